/** The bounds of the two doors, on real sockets with short limits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import type { TLSSocket } from "node:tls";

import { realClock } from "../host/clock.ts";
import { realRandom } from "../host/random.ts";
import { checkAuthority } from "../pki/authority.ts";
import { issueClient, mintAuthority, mintServer } from "../pki/driver.ts";
import type { KeyPair } from "../pki/model.ts";
import { memoryState } from "../state/open.ts";
import { createDoor } from "./caller.ts";
import { countConnections } from "./connections.ts";
import type { Handle } from "./http-server.ts";
import type { Listener } from "./listener.ts";
import { listenOnSocket, listenOnTls } from "./listener.ts";
import { json } from "./problem.ts";

const HEAD_MS = 700;
const IDLE_MS = 2_500;
const state = memoryState();
const folder = mkdtempSync(join(tmpdir(), "corium-listener-"));
let listener: Listener;
let alice: KeyPair;
let cancelled = 0;
let waiting = 0;

const handle: Handle = async (request, wire) => {
  const { pathname } = new URL(request.url);
  if (pathname === "/stream") {
    const pull = (controller: ReadableStreamDefaultController): void => controller.enqueue(new Uint8Array(65_536));
    const cancel = (): void => void (cancelled += 1);
    return new Response(new ReadableStream({ pull, cancel }, { highWaterMark: 0 }));
  }
  if (pathname === "/wait") {
    waiting += 1;
    await new Promise<void>((resolve) => wire.signal.addEventListener("abort", () => resolve()));
    waiting -= 1;
  }
  const body = request.method === "POST" ? await wire.readBody(1_000) : undefined;
  return json(200, { path: pathname, caller: wire.caller.kind, body, connection: wire.connection });
};

beforeAll(async () => {
  const nowMs = Date.now();
  const ca = await mintAuthority({ commonName: "ops", nowMs, random: realRandom });
  alice = await issueClient({ authority: ca, name: "alice", role: "admin", nowMs, random: realRandom });
  const authority = checkAuthority(ca.certificate, nowMs);
  if (!authority.ok) throw new Error(authority.error.message);
  const { pem, fingerprint } = authority.value;
  state.claim.record({ operatorCA: pem, fingerprint, atMs: nowMs, by: "enroll" });
  const server = await mintServer({ hostname: "n1", nowMs, random: realRandom });
  listener = await listenOnTls({
    port: 0,
    address: "127.0.0.1",
    certificate: server.certificate,
    privateKey: server.privateKey,
    door: createDoor(state, realClock),
    handle,
    limits: {
      headMs: HEAD_MS,
      bodyMs: 700,
      idleMs: IDLE_MS,
      slowReaderMs: 700,
      connections: 12,
      keptForAuthenticated: 4,
      inFlightPerClient: 3,
    },
  });
});
afterAll(async () => {
  await listener.close();
  rmSync(folder, { recursive: true });
});

function client(credentials?: KeyPair, port = listener.port): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: "127.0.0.1",
      port,
      rejectUnauthorized: false,
      ...(credentials === undefined ? {} : { cert: credentials.certificate, key: credentials.privateKey }),
    });
    socket.on("error", reject);
    socket.once("secureConnect", () => resolve(socket));
  });
}

/** Everything that comes until the other end closes, or until `enough`. */
function readAll(socket: Socket, enough?: RegExp): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (enough?.test(text) === true) resolve(text);
    });
    socket.on("error", () => resolve(text));
    socket.on("close", () => resolve(text));
  });
}

const closesWithin = async (socket: Socket, ms: number): Promise<boolean> => {
  const started = performance.now();
  await readAll(socket);
  return performance.now() - started < ms;
};
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: n\r\n\r\n`;

describe("who is there", () => {
  test("B154: an empty Host header and an absolute target are served; a certificate is known, a missing one too", async () => {
    const known = await client(alice);
    known.write("GET /a HTTP/1.1\r\nhost: \r\n\r\n");
    expect(await readAll(known, /\}\n/)).toContain('"caller":"operator"');
    known.destroy();
    const stranger = await client();
    stranger.write("GET https://elsewhere:1/a//b HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(await readAll(stranger, /\}\n/)).toContain('"path":"/a//b","caller":"refused"');
    stranger.destroy();
  });
});

describe("deadlines", () => {
  test("of the handshake, of a head, of an idle connection", async () => {
    const raw = connectTcp(listener.port, "127.0.0.1");
    const half = await client();
    half.write("GET / HT");
    const idle = await client(alice);
    const closed = await Promise.all([
      closesWithin(raw, HEAD_MS + 1_200),
      closesWithin(half, HEAD_MS + 1_500),
      closesWithin(idle, IDLE_MS + 1_500),
    ]);
    expect(closed).toEqual([true, true, true]);
  }, 15_000);

  test("of a body, which is told before the connection ends", async () => {
    const socket = await client(alice);
    socket.write("POST /x HTTP/1.1\r\nhost: n\r\ncontent-length: 100\r\n\r\nabc");
    const text = await readAll(socket);
    expect(text).toContain('"error":"timeout"');
    expect(text.toLowerCase()).toContain("connection: close");
  });

  test("of a reader that takes nothing", async () => {
    const socket = await client(alice);
    socket.pause();
    socket.write(get("/stream"));
    const started = performance.now();
    while (cancelled === 0 && performance.now() - started < 8_000) await Bun.sleep(50);
    expect(cancelled).toBe(1);
    socket.destroy();
  }, 15_000);
});

describe("sizes", () => {
  test("B155: a body is counted while it streams, with and without a length", async () => {
    const known = await client(alice);
    known.write(`POST /x HTTP/1.1\r\nhost: n\r\ncontent-length: 2000\r\n\r\n${"x".repeat(2_000)}`);
    expect(await readAll(known, /\}\n/)).toContain('"error":"too-large"');
    known.destroy();
    const chunked = await client(alice);
    chunked.write("POST /x HTTP/1.1\r\nhost: n\r\ntransfer-encoding: chunked\r\n\r\n");
    for (let at = 0; at < 40; at += 1) chunked.write(`400\r\n${"x".repeat(1_024)}\r\n`);
    expect(await readAll(chunked, /\}\n/)).toContain('"error":"too-large"');
    chunked.destroy();
  });

  test("a head that is too large, and what is no HTTP, get a 400 and an end", async () => {
    for (const head of [`GET / HTTP/1.1\r\nhost: n\r\nx: ${"y".repeat(70_000)}\r\n\r\n`, "\u0000\u0001 junk\r\n\r\n"]) {
      const socket = await client();
      socket.write(head);
      expect(await readAll(socket)).toStartWith("HTTP/1.1 4");
    }
    const after = await client(alice);
    after.write(get("/a"));
    expect(await readAll(after, /\}\n/)).toContain("200 OK");
    after.destroy();
  });
});

describe("numbers", () => {
  test("requests of one client at once are bounded, health is not, and one that goes away is noticed", async () => {
    const sockets = await Promise.all(Array.from({ length: 3 }, () => client(alice)));
    for (const socket of sockets) socket.write(get("/wait"));
    while (waiting < 3) await Bun.sleep(20);
    const fourth = await client(alice);
    fourth.write(get("/a"));
    expect(await readAll(fourth, /\}\n/)).toContain("429");
    fourth.write(get("/v1/health"));
    expect(await readAll(fourth, /\}\n/)).toContain("200 OK");
    for (const socket of [...sockets, fourth]) socket.destroy();
    while (waiting > 0) await Bun.sleep(20);
  });

  test("strangers can't take the places kept for operators, nor push one out", async () => {
    while (listener.connectionCount() > 0) await Bun.sleep(20);
    const operator = await client(alice);
    const strangers = await Promise.all(Array.from({ length: 20 }, () => client().catch(() => undefined)));
    await Bun.sleep(100);
    expect(listener.connectionCount()).toBeLessThanOrEqual(8);
    const more = await Promise.all(Array.from({ length: 6 }, () => client(alice)));
    for (const socket of [operator, ...more]) {
      socket.write(get("/a"));
      expect(await readAll(socket, /\}\n/)).toContain("200 OK");
    }
    expect(listener.connectionCount()).toBeLessThanOrEqual(12);
    for (const socket of [operator, ...more, ...strangers]) socket?.destroy();
  });
});

test("the socket is root's alone from its first moment on, and takes over from a dead daemon", async () => {
  const path = join(folder, "api.sock");
  writeFileSync(path, "left over");
  const local = await listenOnSocket({ path, handle });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const answer = await fetch("http://localhost/a", { unix: path });
  expect(await answer.text()).toContain('"caller":"local"');
  await local.close();
});

test("a connection keeps its number for all of its requests, and a later one has a higher one, at either door", async () => {
  const path = join(folder, "numbered.sock");
  const connections = countConnections();
  const local = await listenOnSocket({ path, handle, connections });
  const server = await mintServer({ hostname: "n1", nowMs: Date.now(), random: realRandom });
  const { certificate, privateKey } = server;
  const door = createDoor(state, realClock);
  const remote = await listenOnTls({
    port: 0,
    address: "127.0.0.1",
    certificate,
    privateKey,
    door,
    handle,
    connections,
  });
  const numberOn = async (socket: Socket): Promise<number> => {
    socket.write(get("/a"));
    return Number(/"connection":(\d+)/.exec(await readAll(socket, /\}\n/))?.[1]);
  };
  const opened: Socket[] = [];
  for (const open of [() => connectTcp(path), () => client(alice, remote.port), () => connectTcp(path)]) {
    const socket = await open();
    opened.push(socket);
    const number = await numberOn(socket);
    expect([number, connections.last]).toEqual([opened.length, opened.length]);
    expect(await numberOn(socket)).toBe(number);
  }
  expect(await numberOn(opened[0] as Socket)).toBe(1);
  for (const socket of opened) socket.destroy();
  await Promise.all([local.close(), remote.close()]);
});
