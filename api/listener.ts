/**
 * The two doors: TLS 1.3 on a port and the Unix socket. Named exception of the architecture: it opens sockets.
 *
 * `Bun.serve` and `node:https` can't show a handler the client certificate, therefore node:tls with its sockets handed
 * to node:http. On such sockets none of node's deadlines fire, so that `guard` keeps all of them. Nothing that the
 * runtime says about the certificate is believed (`authorized` was wrong before): only its bytes are taken.
 */
import { constants } from "node:crypto";
import { chmodSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { TLSSocket } from "node:tls";

import type { Credentials, Door } from "./caller.ts";
import type { Connections } from "./connections.ts";
import { countConnections } from "./connections.ts";
import { localCaller } from "./caller.ts";
import type { Handle } from "./http-server.ts";
import { exchange } from "./http-server.ts";
import { problem } from "./problem.ts";

export interface Limits {
  readonly headMs: number;
  readonly bodyMs: number;
  readonly idleMs: number;
  readonly slowReaderMs: number;
  readonly connections: number;
  /** Of them, kept free for those who showed a good certificate. */
  readonly keptForAuthenticated: number;
  readonly inFlightPerClient: number;
  readonly headBytes: number;
}

export const LIMITS: Limits = {
  headMs: 10_000,
  bodyMs: 30_000,
  idleMs: 120_000,
  slowReaderMs: 30_000,
  connections: 256,
  keptForAuthenticated: 16,
  inFlightPerClient: 32,
  headBytes: 16 * 1024,
};

export interface Listener {
  readonly port: number;
  connectionCount(): number;
  /** Stops accepting, ends every connection. */
  close(): Promise<void>;
}

export interface TlsOptions {
  readonly port: number;
  /** Default: every address, IPv4 and IPv6. */
  readonly address?: string;
  readonly certificate: string;
  readonly privateKey: string;
  readonly door: Door;
  readonly handle: Handle;
  readonly limits?: Partial<Limits>;
  readonly connections?: Connections;
}

interface Connection extends Credentials {
  readonly socket: Socket;
  readonly number: number;
  isAuthenticated: boolean;
  inFlight: number;
  /** performance.now() of the last sign of life that counts: opening, end of a response. */
  quietSince: number;
  /** bytesRead at that moment, and when more than that was first seen. */
  bytesAtQuiet: number;
  headSince?: number;
}

const GUARD_INTERVAL_MS = 500;

export function listenOnTls(options: TlsOptions): Promise<Listener> {
  const limits = { ...LIMITS, ...options.limits };
  const connections = new Map<Socket, Connection>();
  const numbers = options.connections ?? countConnections();
  const inFlight = new Map<string, number>();
  /** Accepted, and still shaking hands. */
  const raw = new Set<Socket>();

  const web = createServer({ maxHeaderSize: limits.headBytes }, (incoming, outgoing) => {
    const connection = connections.get(incoming.socket);
    // Can't be: every socket given to `web` was entered before. Nobody is served without a known connection.
    if (connection === undefined) {
      outgoing.destroy();
      return;
    }
    const client =
      connection.verdict?.identity.ok === true ? connection.verdict.identity.value.fingerprint : connection.address;
    const count = inFlight.get(client) ?? 0;
    inFlight.set(client, count + 1);
    connection.inFlight += 1;
    outgoing.once("close", () => {
      const left = (inFlight.get(client) ?? 1) - 1;
      if (left > 0) inFlight.set(client, left);
      else inFlight.delete(client);
      connection.inFlight -= 1;
      connection.quietSince = performance.now();
      connection.bytesAtQuiet = connection.socket.bytesRead;
      delete connection.headSince;
    });
    const handle: Handle = (request, wire) => {
      if (wire.caller.kind === "operator") connection.isAuthenticated = true;
      const isTooMany = count >= limits.inFlightPerClient && new URL(request.url).pathname !== "/v1/health";
      return isTooMany
        ? problem(
            429,
            "too many requests at once; wait for some of them to end",
            { reason: "too-many-requests" },
            { "retry-after": "1" },
          )
        : options.handle(request, wire);
    };
    void exchange(
      incoming,
      outgoing,
      () => options.door(connection),
      { address: connection.address, connection: connection.number },
      handle,
      {
        bodyTimeoutMs: limits.bodyMs,
        slowReaderMs: limits.slowReaderMs,
      },
    );
  });
  answerBadRequests(web);

  const server = createTlsServer(
    {
      cert: options.certificate,
      key: options.privateKey,
      minVersion: "TLSv1.3",
      maxVersion: "TLSv1.3",
      ALPNProtocols: ["http/1.1"],
      requestCert: true,
      // The runtime would judge by its own rules and before a CA is pinned; `door` judges each request.
      rejectUnauthorized: false,
      handshakeTimeout: limits.headMs,
      // A resumed session would show an old identity without any certificate.
      secureOptions: constants.SSL_OP_NO_TICKET,
    },
    (socket) => {
      socket.on("error", () => socket.destroy());
      if (socket.isSessionReused()) {
        socket.destroy();
        return;
      }
      const connection = enter(socket);
      if (connection === undefined) return;
      connections.set(socket, connection);
      socket.once("close", () => connections.delete(socket));
      web.emit("connection", socket);
    },
  );
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  server.on("connection", (socket: Socket) => {
    raw.add(socket);
    socket.once("close", () => raw.delete(socket));
    socket.on("error", () => socket.destroy());
  });

  function enter(socket: TLSSocket): Connection | undefined {
    const certificate = certificateOf(socket);
    const connection: Connection = {
      socket,
      number: numbers.open(),
      address: socket.remoteAddress?.replace(/^::ffff:/, "") ?? "",
      ...(certificate === undefined ? {} : { certificate }),
      isAuthenticated: false,
      inFlight: 0,
      quietSince: performance.now(),
      bytesAtQuiet: socket.bytesRead,
    };
    connection.isAuthenticated = options.door(connection).kind === "operator";
    const room = connection.isAuthenticated ? limits.connections : limits.connections - limits.keptForAuthenticated;
    if (connections.size >= room && !makeRoom(connection.isAuthenticated)) {
      socket.destroy();
      return undefined;
    }
    return connection;
  }

  /** The unauthenticated connection that idles longest goes first. */
  function makeRoom(isAuthenticated: boolean): boolean {
    const idle = [...connections.values()]
      .filter((other) => other.inFlight === 0)
      .toSorted((a, b) => a.quietSince - b.quietSince);
    const victim = idle.find((other) => !other.isAuthenticated) ?? (isAuthenticated ? idle[0] : undefined);
    if (victim === undefined) return false;
    connections.delete(victim.socket);
    victim.socket.destroy();
    return true;
  }

  const guard = setInterval(() => {
    const now = performance.now();
    for (const connection of connections.values()) {
      if (connection.inFlight > 0) continue;
      if (connection.headSince === undefined && connection.socket.bytesRead > connection.bytesAtQuiet)
        connection.headSince = now;
      const isHeadLate = connection.headSince !== undefined && now - connection.headSince > limits.headMs;
      if (isHeadLate || now - connection.quietSince > limits.idleMs) connection.socket.destroy();
    }
  }, GUARD_INTERVAL_MS);

  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: options.port, host: options.address ?? "::", ipv6Only: false, backlog: 128 }, () => {
      server.off("error", reject);
      resolve({
        port: (server.address() as AddressInfo).port,
        connectionCount: () => connections.size,
        close: () =>
          new Promise((closed) => {
            clearInterval(guard);
            server.close(() => closed());
            for (const { socket } of connections.values()) socket.destroy();
            for (const socket of raw) socket.destroy();
            setTimeout(closed, 500).unref();
          }),
      });
    });
  });
}

/** The bytes of the certificate that this very connection showed; undefined when it showed none. */
function certificateOf(socket: TLSSocket): Uint8Array | undefined {
  const { raw } = socket.getPeerCertificate(false) as { readonly raw?: Buffer };
  return raw === undefined || raw.length === 0 ? undefined : new Uint8Array(raw);
}

export interface SocketOptions {
  readonly path: string;
  readonly handle: Handle;
  readonly limits?: Partial<Limits>;
  readonly connections?: Connections;
}

/** The local door: the file's owner is root and its mode 0600 from its first moment on, that is the whole check. */
export function listenOnSocket(options: SocketOptions): Promise<Listener> {
  const limits = { ...LIMITS, ...options.limits };
  const connections = options.connections ?? countConnections();
  const numbers = new WeakMap<Socket, number>();
  const web = createServer((incoming, outgoing) => {
    const isConsole = incoming.headers["corium-client"] === "console";
    const caller = () => localCaller(isConsole ? "console" : "local");
    const connection = numbers.get(incoming.socket) ?? 0;
    void exchange(incoming, outgoing, caller, { address: "", connection }, options.handle, {
      bodyTimeoutMs: limits.bodyMs,
      slowReaderMs: limits.slowReaderMs,
    });
  });
  web.on("connection", (socket) => void numbers.set(socket, connections.open()));
  answerBadRequests(web);
  // Left over by a process that was killed; two daemons are kept apart by systemd.
  rmSync(options.path, { force: true });
  return new Promise((resolve, reject) => {
    const before = process.umask(0o177);
    const restore = (): void => void process.umask(before);
    web.once("error", (error) => {
      restore();
      reject(error);
    });
    web.listen(options.path, () => {
      restore();
      chmodSync(options.path, 0o600);
      resolve({
        port: 0,
        connectionCount: () => 0,
        close: () =>
          new Promise((closed) => {
            web.close(() => closed());
            web.closeAllConnections();
            setTimeout(closed, 500).unref();
          }),
      });
    });
  });
}

/** What the parser refuses gets a 400 and an end, never a crash. */
function answerBadRequests(web: Server): void {
  web.on("clientError", (_error, socket: Socket) => {
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    else socket.destroy();
  });
  web.on("upgrade", (_incoming, socket: Socket) => socket.destroy());
  web.on("checkContinue", (incoming, outgoing: ServerResponse) => {
    outgoing.writeContinue();
    web.emit("request", incoming, outgoing);
  });
}
