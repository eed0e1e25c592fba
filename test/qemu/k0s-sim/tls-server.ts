/** A TLS listener that knows the client's certificate. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { Pair } from "./certificates.ts";

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly bearer?: string;
  readonly body: string;
  readonly contentType: string;
  /** Subject of a certificate that our own CA signed. */
  readonly client?: { readonly commonName: string; readonly organization: string };
}

export interface Answer {
  readonly status: number;
  readonly json?: unknown;
  readonly text?: string;
}

export interface TlsListener {
  stop(): void;
}

async function read(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

export async function listenTls(
  where: { readonly port: number; readonly host?: string; readonly pair: Pair; readonly ca: string },
  handle: (call: Call) => Promise<Answer>,
): Promise<TlsListener> {
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "https://node");
    const socket = request.socket as TLSSocket;
    // The chain first: a foreign certificate has a subject too.
    const subject = socket.authorized ? socket.getPeerCertificate().subject : undefined;
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const answer = await handle({
      method: request.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      body: await read(request),
      contentType: request.headers["content-type"] ?? "",
      ...(bearer === undefined ? {} : { bearer }),
      ...(subject === undefined ? {} : { client: { commonName: String(subject.CN), organization: String(subject.O) } }),
    });
    const isText = answer.text !== undefined;
    response.writeHead(answer.status, { "content-type": isText ? "text/plain; charset=utf-8" : "application/json" });
    response.end(answer.text ?? JSON.stringify(answer.json ?? {}));
  }
  const http = createHttpServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      response.writeHead(500, { "content-type": "application/json" });
      response.end(JSON.stringify({ kind: "Status", status: "Failure", code: 500, message: String(error) }));
    });
  });
  const sockets = new Set<TLSSocket>();
  const tls = createTlsServer(
    { ...where.pair, ca: where.ca, requestCert: true, rejectUnauthorized: false, minVersion: "TLSv1.2" },
    (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => socket.destroy());
      http.emit("connection", socket);
    },
  );
  tls.on("tlsClientError", (_error, socket) => {
    socket.destroy();
  });
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  tls.once("error", reject);
  tls.listen(where.port, where.host, () => {
    resolve(undefined);
  });
  await promise;
  return {
    stop: () => {
      tls.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
