/**
 * From node:http to the fetch shape and back, with the bounds of docs/reference/api: one place for TLS and socket.
 * Bodies are read only when a route asks, up to what the route allows.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import type { Caller } from "./caller.ts";
import { problem } from "./problem.ts";

export type BodyProblem = "too-large" | "timeout" | "broken";

/** What a route knows beside the request itself. */
export interface Wire {
  readonly caller: Caller;
  /** Who it would be by now: what is pinned, revoked or past its end may have changed since. */
  readonly recheck: () => Caller;
  readonly address: string;
  /** The number of this connection: the higher, the later it was opened. */
  readonly connection: number;
  readonly readBody: (limitBytes: number) => Promise<Result<string, BodyProblem>>;
  /** The client went away, or the server stops. */
  readonly signal: AbortSignal;
}

export type Handle = (request: Request, wire: Wire) => Response | Promise<Response>;

export interface ExchangeLimits {
  readonly bodyTimeoutMs: number;
  /** A client that takes nothing of a response for this long is cut. */
  readonly slowReaderMs: number;
}

/** Never rejects: what goes wrong here ends this one exchange. */
export async function exchange(...given: Parameters<typeof answer>): Promise<void> {
  const [incoming] = given;
  try {
    await answer(...given);
  } catch (thrown) {
    complain(thrown);
    incoming.socket.destroy();
  }
}

const complain = (thrown: unknown): void =>
  void process.stderr.write(`${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}\n`);

async function answer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  caller: () => Caller,
  { address, connection }: Pick<Wire, "address" | "connection">,
  handle: Handle,
  limits: ExchangeLimits,
): Promise<void> {
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  outgoing.on("error", () => gone.abort());
  incoming.on("error", () => gone.abort());
  let response: Response;
  let isBodyRead = false;
  try {
    const request = toRequest(incoming);
    if (request === undefined) response = problem(400, "this request line or a header can't be read");
    else {
      response = await handle(request, {
        caller: caller(),
        recheck: caller,
        address,
        connection,
        signal: gone.signal,
        readBody: (limit) => {
          isBodyRead = true;
          return readBody(incoming, limit, limits.bodyTimeoutMs);
        },
      });
    }
  } catch (thrown) {
    response = problem(500, "something unexpected happened; the journal of corium-apid says what");
    complain(thrown);
  }
  const hasBody =
    incoming.headers["transfer-encoding"] !== undefined || Number(incoming.headers["content-length"] ?? 0) > 0;
  // An unread body would be taken for the next request, and reading a refused one costs what the refusal saved.
  const mustClose = hasBody && (!isBodyRead || !incoming.complete);
  await send(response, outgoing, incoming.method === "HEAD", mustClose, gone.signal, limits.slowReaderMs);
  if (mustClose) setTimeout(() => incoming.socket.destroy(), 500).unref();
}

function toRequest(incoming: IncomingMessage): Request | undefined {
  try {
    const target = incoming.url ?? "/";
    // `//x` would be read as a host. The Host header is never believed: it may be empty or anybody's.
    const url = new URL(target.startsWith("/") ? `http://node/${target.replace(/^\/+/, "")}` : target, "http://node");
    const headers = new Headers();
    for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
      headers.append(incoming.rawHeaders[at] ?? "", incoming.rawHeaders[at + 1] ?? "");
    }
    return new Request(url.href, { method: incoming.method ?? "GET", headers });
  } catch {
    return undefined;
  }
}

async function readBody(
  incoming: IncomingMessage,
  limitBytes: number,
  timeoutMs: number,
): Promise<Result<string, BodyProblem>> {
  if (Number(incoming.headers["content-length"] ?? 0) > limitBytes) return err("too-large");
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve) => {
    const settle = (result: Result<string, BodyProblem>): void => {
      clearTimeout(timer);
      incoming.off("data", onData);
      resolve(result);
    };
    const timer = setTimeout(() => settle(err("timeout")), timeoutMs);
    // Counted while it streams: a chunked body says nothing of its length beforehand.
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limitBytes) settle(err("too-large"));
      else chunks.push(chunk);
    };
    incoming.on("data", onData);
    incoming.on("end", () => settle(ok(Buffer.concat(chunks).toString("utf8"))));
    incoming.on("error", () => settle(err("broken")));
    incoming.on("close", () => settle(err("broken")));
  });
}

async function send(
  response: Response,
  outgoing: ServerResponse,
  isHead: boolean,
  mustClose: boolean,
  gone: AbortSignal,
  slowReaderMs: number,
): Promise<void> {
  const headers: Record<string, string> = {};
  for (const [name, value] of response.headers) headers[name] = value;
  if (mustClose) headers["connection"] = "close";
  const reader = response.body?.getReader();
  if (reader === undefined || isHead) {
    headers["content-length"] ??= "0";
    outgoing.writeHead(response.status, headers);
    outgoing.end();
    await reader?.cancel();
    return;
  }
  outgoing.writeHead(response.status, headers);
  const stop = (): void => void reader.cancel().catch(() => {});
  gone.addEventListener("abort", stop, { once: true });
  try {
    for (let chunk = await reader.read(); !chunk.done && !gone.aborted; chunk = await reader.read()) {
      if (!outgoing.write(chunk.value) && !(await drained(outgoing, gone, slowReaderMs))) {
        outgoing.destroy();
        stop();
        return;
      }
    }
  } catch {
    // The stream broke after its status was sent: cutting the connection is the only way left to say so.
    outgoing.destroy();
    return;
  } finally {
    gone.removeEventListener("abort", stop);
  }
  outgoing.end();
}

function drained(outgoing: ServerResponse, gone: AbortSignal, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isDrained: boolean) => (): void => {
      clearTimeout(timer);
      outgoing.off("drain", onDrain);
      gone.removeEventListener("abort", onGone);
      resolve(isDrained);
    };
    const onDrain = settle(true);
    const onGone = settle(false);
    const timer = setTimeout(settle(false), timeoutMs);
    outgoing.once("drain", onDrain);
    gone.addEventListener("abort", onGone, { once: true });
  });
}
