import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Server, type TLSSocket, createServer } from "node:tls";
import type { AddressInfo } from "node:net";
import { realRandom } from "../host/random.ts";
import { Secret } from "../kit/secret.ts";
import { issueClient, mintAuthority, mintServer } from "../pki/driver.ts";
import { fingerprintOfPem } from "../pki/fingerprint.ts";
import type { KeyPair } from "../pki/model.ts";
import type { NodeAddress } from "./address.ts";
import { type HttpAnswer, openConnection } from "./connection.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";

const nowMs = Date.now();
let node: KeyPair;
let authority: KeyPair;
let stranger: KeyPair;

beforeAll(async () => {
  node = await mintServer({ hostname: "node1", nowMs, random: realRandom });
  authority = await mintAuthority({ commonName: "operators", nowMs, random: realRandom });
  stranger = await mintAuthority({ commonName: "strangers", nowMs, random: realRandom });
});

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** What a peer was sent over all its connections, and how it answers. */
async function serve(
  onData: (socket: TLSSocket) => void,
  options: Parameters<typeof createServer>[0] = {},
): Promise<{ address: NodeAddress; received: () => string }> {
  let received = "";
  const server = createServer({ key: node.privateKey, cert: node.certificate, ...options }, (socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      received += chunk.toString();
      onData(socket);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
  return { address, received: () => received };
}

async function get(
  options: Parameters<typeof openConnection>[0],
  onLine?: (line: string) => void,
): Promise<Result<HttpAnswer, AppError>> {
  const opened = await openConnection(options);
  if (!opened.ok) return opened;
  return opened.value.call({
    method: "GET",
    path: "/v1/health",
    idleTimeoutMs: 1_000,
    ...(onLine === undefined ? {} : { onLine }),
  });
}

const pinned = (): string => fingerprintOfPem(node.certificate) ?? "";
const credentials = async (ca: KeyPair): Promise<{ certificate: string; key: Secret }> => {
  const pair = await issueClient({ authority: ca, name: "ann", role: "admin", nowMs, random: realRandom });
  return { certificate: pair.certificate, key: new Secret("client.key", pair.privateKey) };
};

describe("openConnection", () => {
  test("the pinned node is asked over the socket that was checked", async () => {
    const peer = await serve((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    const answer = await get({ address: peer.address, fingerprint: pinned(), timeoutMs: 2_000 });
    expect(answer.ok && answer.value.body).toBe("ok");
    expect(peer.received()).toStartWith("GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1:");
  });

  test("B063: a node that took 1970 for today when it made its certificate is reached all the same", async () => {
    const pair = await mintServer({ hostname: "node1", nowMs: 0, random: realRandom });
    const peer = await serve((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), {
      key: pair.privateKey,
      cert: pair.certificate,
    });
    const fingerprint = fingerprintOfPem(pair.certificate) ?? "";
    const answer = await get({ address: peer.address, fingerprint, timeoutMs: 2_000 });
    expect(answer.ok && answer.value.status).toBe(200);
  });

  test("not one byte is sent to another peer", async () => {
    const peer = await serve((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
    const wanted = `SHA256:${"A".repeat(43)}`;
    for (let tries = 0; tries < 20; tries += 1) {
      const opened = await openConnection({ address: peer.address, fingerprint: wanted, timeoutMs: 2_000 });
      expect(!opened.ok && opened.error.code).toBe("wrong-peer");
      expect(!opened.ok && opened.error.details).toEqual([`wanted ${wanted}`, `got    ${pinned()}`]);
    }
    await Bun.sleep(50);
    expect(peer.received()).toBe("");
  });

  test("a fingerprint with one other symbol is another fingerprint", async () => {
    const peer = await serve((socket) => socket.end());
    const wrong = pinned().replace(/.$/, (last) => (last === "A" ? "B" : "A"));
    const opened = await openConnection({ address: peer.address, fingerprint: wrong, timeoutMs: 2_000 });
    expect(opened.ok).toBe(false);
  });

  test("a refused client certificate is told from a dead node", async () => {
    const peer = await serve((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), {
      requestCert: true,
      rejectUnauthorized: true,
      ca: authority.certificate,
    });
    const base = { address: peer.address, fingerprint: pinned(), timeoutMs: 2_000 };
    const good = await get({ ...base, credentials: await credentials(authority) });
    expect(good.ok && good.value.status).toBe(200);
    const none = await get(base);
    expect(!none.ok && none.error.code).toBe("not-authorised");
    // This peer hangs up without an alert, so the hint has to name both.
    const wrong = await get({ ...base, credentials: await credentials(stranger) });
    expect(!wrong.ok && wrong.error.hint).toContain("another CA");
  });

  test("a port where nobody listens is not reachable", async () => {
    const answer = await get({ address: { host: "127.0.0.1", port: 1 }, timeoutMs: 2_000 });
    expect(!answer.ok && answer.error).toMatchObject({
      code: "unreachable",
      message: "127.0.0.1:1 refuses the connection",
    });
  });

  test("a peer that says nothing is given up", async () => {
    const peer = await serve(() => undefined);
    const answer = await get({ address: peer.address, fingerprint: pinned(), timeoutMs: 2_000 });
    expect(!answer.ok && answer.error.message).toBe(`127.0.0.1:${peer.address.port} sent nothing for 1 s`);
  });

  test("lines of a stream arrive whole, and a stream that breaks off is not complete", async () => {
    const lines: string[] = [];
    const peer = await serve((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n');
      setTimeout(() => socket.write("4\r\n1}\n{\r\n"), 20);
      setTimeout(() => socket.destroy(), 40);
    });
    const options = { address: peer.address, fingerprint: pinned(), timeoutMs: 2_000 };
    const answer = await get(options, (line) => lines.push(line));
    expect(lines).toEqual(['{"a":1}']);
    expect(!answer.ok && answer.error.code).toBe("unreachable");
  });

  test("ctrl-c ends a call", async () => {
    const peer = await serve(() => undefined);
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 50);
    const answer = await get({ address: peer.address, timeoutMs: 2_000, signal: stop.signal });
    expect(!answer.ok && answer.error.code).toBe("interrupted");
  });
});

test("a line that could not be shown left the command waiting for ever; one without an end filled the memory", async () => {
  const head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
  const broken = await serve((socket) => socket.write(`${head}5\r\nnull\n\r\n`));
  const answer = await get({ address: broken.address, timeoutMs: 2_000 }, () => {
    throw new TypeError("no such field");
  });
  expect(!answer.ok && [answer.error.code, answer.error.message.includes("not understood")]).toEqual([
    "protocol",
    true,
  ]);
  const chunk = `100000\r\n${"x".repeat(0x100000)}\r\n`;
  const endless = await serve((socket) => socket.write(head + chunk.repeat(6)));
  const cut = await get({ address: endless.address, timeoutMs: 2_000 }, () => undefined);
  expect(!cut.ok && cut.error.message).toContain("a line without an end");
});
