/** B154: whatever comes over the wire, the daemon answers or hangs up, and goes on. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:tls";

import * as fc from "fast-check";

import { createDoor } from "../../api/caller.ts";
import type { Listener } from "../../api/listener.ts";
import { listenOnTls } from "../../api/listener.ts";
import { createApi } from "../../api/app.ts";
import { realRandom } from "../../host/random.ts";
import { mintServer } from "../../pki/driver.ts";
import { fakeApi } from "../support/fake-api.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const RUNS = Number(process.env["CORIUM_RAW_HTTP_RUNS"] ?? 300);
let listener: Listener;

beforeAll(async () => {
  const { services } = await fakeApi();
  const server = await mintServer({ hostname: "n", nowMs: Date.now(), random: realRandom });
  listener = await listenOnTls({
    port: 0,
    address: "127.0.0.1",
    certificate: server.certificate,
    privateKey: server.privateKey,
    door: createDoor(services.state, services.host.clock),
    handle: createApi(services).handle,
  });
});
afterAll(() => listener.close());

/** The status line of the first answer; empty when it hung up or said nothing. */
function send(bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ host: "127.0.0.1", port: listener.port, rejectUnauthorized: false }, () => {
      socket.write(bytes);
      // What is not finished is not answered: this is about what it does to the daemon.
      timer = setTimeout(() => socket.destroy(), 150);
    });
    let timer: ReturnType<typeof setTimeout> | undefined;
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(text.split("\r\n")[0] ?? "");
    });
  });
}

const latin1 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "latin1"));
const isAlive = async (): Promise<boolean> =>
  (await send(latin1("GET /v1/health HTTP/1.1\r\nhost: n\r\n\r\n"))).includes("409");

const CORPUS: readonly string[] = [
  "GET / HTTP/1.1\r\nHost:\r\n\r\n",
  "GET / HTTP/1.1\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
  "GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
  "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n",
  "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
  "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
  "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
  "GET /%ff%fe%00 HTTP/1.1\r\nHost: a\r\n\r\n",
  "GET /\u00ff\u00fe HTTP/1.1\r\nHost: a\r\n\r\n",
  "GET //// HTTP/1.1\r\nHost: a\r\n\r\n",
  "GET /v1/operations/%2e%2e%2f%2e%2e HTTP/1.1\r\nHost: a\r\n\r\n",
  "POST /v1/enroll HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
  "POST /v1/enroll HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
  "POST /v1/enroll HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "POST /v1/enroll HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n",
  "POST /v1/enroll HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
  `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
  `GET / HTTP/1.1\r\n${Array.from({ length: 3_000 }, (_, at) => `x${at}: y\r\n`).join("")}\r\n`,
  "\r\n\r\n\r\n",
];

test("the corpus of known traps: never a success, never the end", async () => {
  for (const trap of CORPUS) {
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(await send(latin1(trap)))?.[1] ?? 400);
    expect([trap.slice(0, 60), status >= 400 || status === 100]).toEqual([trap.slice(0, 60), true]);
  }
  expect(await isAlive()).toBe(true);
}, 60_000);

test("random bytes and broken requests", async () => {
  const piece = fc.oneof(
    fc.constantFrom(...CORPUS),
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom(
      "\r\n",
      "\r\n\r\n",
      " ",
      ":",
      "GET ",
      "POST /v1/enroll HTTP/1.1\r\n",
      "Content-Length: 5\r\n",
      "{}",
    ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 5 }), async (pieces) => {
      const first = await send(latin1(pieces.join("")));
      return !/^HTTP\/1\.1 (2|5)/.test(first);
    }),
    { numRuns: RUNS },
  );
  expect(await isAlive()).toBe(true);
}, 180_000);
