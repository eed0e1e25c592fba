/**
 * The answering half of HTTP/1.1, fed with whatever arrives. Our own because the request must go over a socket
 * whose peer has been checked already, and no client of the runtime promises to use the socket it is given.
 */
import { type Result, err, ok } from "../kit/result.ts";

export interface ResponseHead {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
}

export interface ResponseReader {
  /** Returns the pieces of body that became complete. */
  readonly push: (chunk: Uint8Array) => Result<readonly Uint8Array[], string>;
  readonly head: () => ResponseHead | undefined;
  /** The whole body has arrived. */
  readonly isComplete: () => boolean;
  /** The peer closed: fine only when the body ends where the connection does. */
  readonly end: () => Result<void, string>;
}

const maxHeadBytes = 64 * 1024;

export function createResponseReader(): ResponseReader {
  let buffered: Uint8Array = new Uint8Array(0);
  let head: ResponseHead | undefined;
  let isComplete = false;
  let mode: { kind: "length"; left: number } | { kind: "chunked"; left: number } | { kind: "to-end" } | undefined;

  const readHead = (): Result<boolean, string> => {
    const end = indexOf(buffered, "\r\n\r\n");
    if (end === -1) return buffered.length > maxHeadBytes ? err("its answer has a head without end") : ok(false);
    const parsed = parseHead(new TextDecoder("latin1").decode(buffered.subarray(0, end)));
    if (!parsed.ok) return parsed;
    buffered = buffered.subarray(end + 4);
    // 100 Continue and friends announce the real one.
    if (parsed.value.status < 200) return readHead();
    head = parsed.value;
    const length = head.headers.get("content-length");
    if (/\bchunked$/i.test(head.headers.get("transfer-encoding") ?? "")) mode = { kind: "chunked", left: 0 };
    else if (length !== undefined && /^\d+$/.test(length)) mode = { kind: "length", left: Number(length) };
    else mode = { kind: "to-end" };
    if (head.status === 204 || head.status === 304) mode = { kind: "length", left: 0 };
    if (mode.kind === "length" && mode.left === 0) isComplete = true;
    return ok(true);
  };

  const take = (count: number): Uint8Array => {
    const piece = buffered.subarray(0, count);
    buffered = buffered.subarray(count);
    return piece;
  };

  const readChunks = (state: { left: number }, pieces: Uint8Array[]): Result<void, string> => {
    while (!isComplete) {
      if (state.left > 2) {
        // `left` counts the line end behind the data too; only data is handed out.
        const data = take(Math.min(state.left - 2, buffered.length));
        if (data.length === 0) return ok(undefined);
        state.left -= data.length;
        pieces.push(data);
        continue;
      }
      if (state.left > 0) {
        if (buffered.length < state.left) return ok(undefined);
        take(state.left);
        state.left = 0;
      }
      const end = indexOf(buffered, "\r\n");
      if (end === -1) return buffered.length > maxHeadBytes ? err("its answer is not HTTP") : ok(undefined);
      const size = /^([0-9A-Fa-f]{1,8})\s*(;.*)?$/.exec(new TextDecoder("latin1").decode(buffered.subarray(0, end)));
      if (size === null) return err("its answer is not HTTP");
      take(end + 2);
      const count = Number.parseInt(size[1] ?? "", 16);
      // Trailers are of no use to us.
      if (count === 0) isComplete = true;
      else state.left = count + 2;
    }
    return ok(undefined);
  };

  return {
    push(chunk) {
      buffered = buffered.length === 0 ? chunk : concat(buffered, chunk);
      if (head === undefined) {
        const read = readHead();
        if (!read.ok) return read;
        if (!read.value) return ok([]);
      }
      const pieces: Uint8Array[] = [];
      if (mode?.kind === "to-end") pieces.push(take(buffered.length));
      if (mode?.kind === "length") {
        pieces.push(take(Math.min(mode.left, buffered.length)));
        mode.left -= pieces[0]?.length ?? 0;
        isComplete = mode.left === 0;
      }
      if (mode?.kind === "chunked") {
        const read = readChunks(mode, pieces);
        if (!read.ok) return read;
      }
      return ok(pieces.filter((piece) => piece.length > 0));
    },
    head: () => head,
    isComplete: () => isComplete,
    end() {
      if (isComplete || mode?.kind === "to-end") {
        isComplete = true;
        return ok(undefined);
      }
      return err(head === undefined ? "it closed the connection without an answer" : "its answer broke off");
    },
  };
}

function parseHead(text: string): Result<ResponseHead, string> {
  const [first = "", ...lines] = text.split("\r\n");
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first);
  if (status === null) return err("its answer is not HTTP");
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return ok({ status: Number(status[1]), headers });
}

function indexOf(bytes: Uint8Array, text: string): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf(text, 0, "latin1");
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}
