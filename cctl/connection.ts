/**
 * One TLS connection to a node. Its certificate is compared with the pinned fingerprint before a single byte of
 * a request is written, and the request then goes over that very socket. Names, dates and chains are not
 * consulted: the fingerprint is the identity of a node (docs/cctl.md).
 */
import { isIP } from "node:net";
import { type TLSSocket, connect } from "node:tls";
import { type AppError, appError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { Secret } from "../kit/secret.ts";
import { fingerprintOfDer } from "../pki/fingerprint.ts";
import { type NodeAddress, formatAddress } from "./address.ts";
import { type ResponseHead, createResponseReader } from "./http-response.ts";

export interface ConnectOptions {
  readonly address: NodeAddress;
  /** `SHA256:…`; absent only at enrolment, where a person compares before anything is sent. */
  readonly fingerprint?: string;
  readonly credentials?: { readonly certificate: string; readonly key: Secret };
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface HttpCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Each whole line of the body as it arrives; the body is then not collected. */
  readonly onLine?: (line: string) => void;
  /** Without an answer, or in the middle of one, for this long. */
  readonly idleTimeoutMs: number;
}

export interface HttpAnswer extends ResponseHead {
  readonly body: string;
}

export interface Connection {
  /** Of the certificate that the peer has shown. */
  readonly fingerprint: string;
  /** One call; the connection is closed by it. */
  readonly call: (call: HttpCall) => Promise<Result<HttpAnswer, AppError>>;
  readonly close: () => void;
}

const maxBodyBytes = 64 * 1024 * 1024;
/** Of a stream; the journal itself cuts messages long before. */
const maxLineLength = 4 * 1024 * 1024;

/** `code`: `unreachable`, `wrong-peer`, `not-authorised`, `protocol`, `interrupted`. */
export async function openConnection(options: ConnectOptions): Promise<Result<Connection, AppError>> {
  const { address, credentials } = options;
  const where = formatAddress(address);
  const opened = Promise.withResolvers<Result<Connection, AppError>>();
  const socket = connect({
    host: address.host,
    port: address.port,
    ...(isIP(address.host) === 0 ? { servername: address.host } : {}),
    ...(credentials === undefined ? {} : { cert: credentials.certificate, key: credentials.key.reveal() }),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.3",
    // The chain proves nothing here. What counts is checked below, before the first write.
    rejectUnauthorized: false,
  });
  const give = (result: Result<Connection, AppError>): void => {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", interrupt);
    socket.off("error", onError);
    if (!result.ok) socket.destroy();
    opened.resolve(result);
  };
  const onError = (error: Error): void => give({ ok: false, error: describeFailure(error, where) });
  const interrupt = (): void => give(fail("interrupted", "interrupted"));
  const timer = setTimeout(
    () => give(fail("unreachable", `${where} does not answer`, { hint: "is the node on, and is this its address?" })),
    options.timeoutMs,
  );
  options.signal?.addEventListener("abort", interrupt);
  // A late error of a socket that was given up must not end the program.
  socket.on("error", () => undefined);
  socket.on("error", onError);
  socket.once("secureConnect", () => {
    const shown = socket.getPeerCertificate(true)?.raw;
    if (shown === undefined) {
      give(fail("protocol", `${where} shows no certificate`));
      return;
    }
    const fingerprint = fingerprintOfDer(shown);
    if (options.fingerprint !== undefined && fingerprint !== options.fingerprint) {
      give(
        fail("wrong-peer", `${where} shows another fingerprint; nothing was sent to it`, {
          details: [`wanted ${options.fingerprint}`, `got    ${fingerprint}`],
          hint: "was it reset or replaced? compare with its console, then enroll it again",
        }),
      );
      return;
    }
    const close = (): void => void socket.destroy();
    give(ok({ fingerprint, call: (call) => runCall(socket, where, call, options.signal), close }));
  });
  return opened.promise;
}

function runCall(
  socket: TLSSocket,
  where: string,
  call: HttpCall,
  signal: AbortSignal | undefined,
): Promise<Result<HttpAnswer, AppError>> {
  const finished = Promise.withResolvers<Result<HttpAnswer, AppError>>();
  const reader = createResponseReader();
  const pieces: Uint8Array[] = [];
  const decoder = new TextDecoder();
  let line = "";
  let size = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const give = (result: Result<HttpAnswer, AppError>): void => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", interrupt);
    socket.destroy();
    finished.resolve(result);
  };
  const interrupt = (): void => give(fail("interrupted", "interrupted"));
  const restart = (): void => {
    clearTimeout(timer);
    const silent = `${where} sent nothing for ${Math.round(call.idleTimeoutMs / 1000)} s`;
    timer = setTimeout(() => give(fail("unreachable", silent)), call.idleTimeoutMs);
  };
  /** What is thrown in a socket's event ends no command: it would wait for ever. */
  const show = (text: string): boolean => {
    try {
      call.onLine?.(text);
      return true;
    } catch {
      give(fail("protocol", `${where} sent a line that is not understood; is it of a much newer version?`));
      return false;
    }
  };
  const complete = (): void => {
    const head = reader.head();
    if (head === undefined) return;
    if (call.onLine !== undefined && line !== "" && !show(line)) return;
    give(ok({ ...head, body: Buffer.concat(pieces).toString("utf8") }));
  };
  const accept = (piece: Uint8Array): void => {
    // Refusals of a stream are ordinary bodies.
    if (call.onLine === undefined || (reader.head()?.status ?? 0) >= 300) {
      size += piece.length;
      pieces.push(piece);
      return;
    }
    const lines = (line + decoder.decode(piece, { stream: true })).split("\n");
    line = lines.pop() ?? "";
    for (const whole of lines) if (whole !== "" && !show(whole)) return;
    if (line.length > maxLineLength) give(fail("protocol", `${where} sent a line without an end`));
  };

  signal?.addEventListener("abort", interrupt);
  if (signal?.aborted === true) interrupt();
  socket.on("data", (chunk: Buffer) => {
    restart();
    const read = reader.push(chunk);
    if (!read.ok) return give(fail("protocol", `${where} does not speak as a node does: ${read.error}`));
    for (const piece of read.value) accept(piece);
    if (size > maxBodyBytes) return give(fail("protocol", `the answer of ${where} is larger than 64 MiB`));
    if (reader.isComplete()) complete();
  });
  socket.on("error", (error) => give({ ok: false, error: describeFailure(error, where) }));
  socket.on("close", () => {
    const ended = reader.end();
    if (ended.ok) complete();
    else {
      const hint = "it may be restarting: try again; or it obeys another CA: see 'cctl pki show'";
      give(fail("unreachable", `${where} was lost: ${ended.error}`, { hint }));
    }
  });
  restart();
  socket.write(formatCall(call, where));
  return finished.promise;
}

/** Header values come from our own code and from parsed flags; a line end in one would forge a second header. */
function formatCall(call: HttpCall, where: string): string {
  const body = call.body ?? "";
  const headers = {
    Host: where,
    "User-Agent": "cctl",
    Accept: "application/json, application/x-ndjson",
    Connection: "close",
    ...(call.body === undefined && call.method === "GET" ? {} : { "Content-Type": "application/json" }),
    ...(call.method === "GET" ? {} : { "Content-Length": String(Buffer.byteLength(body)) }),
    ...call.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value.replace(/[\r\n]/g, "")}`);
  return [`${call.method} ${call.path} HTTP/1.1`, ...lines, "", body].join("\r\n");
}

/** TLS 1.3 refuses a client certificate only after the handshake, as an alert in place of the answer. */
function describeFailure(error: Error & { code?: string }, where: string): AppError {
  const text = `${error.code ?? ""} ${error.message}`;
  if (/CERTIFICATE_REQUIRED|certificate required|ALERT|alert/i.test(text)) {
    return appError("not-authorised", `${where} does not accept this client certificate`, {
      hint: "show yours with 'cctl pki show'; it must come from the CA that the node was claimed with",
    });
  }
  const known: Readonly<Record<string, string>> = {
    ECONNREFUSED: "refuses the connection",
    ENOTFOUND: "is not known to the resolver",
    EAI_AGAIN: "can't be resolved now",
    EHOSTUNREACH: "can't be reached: no route",
    ENETUNREACH: "can't be reached: no network",
    ETIMEDOUT: "does not answer",
    ECONNRESET: "closed the connection",
  };
  const reason = known[error.code ?? ""] ?? `can't be spoken to (${error.code ?? error.message})`;
  return appError("unreachable", `${where} ${reason}`, { hint: "is the node on, and is this its address?" });
}
