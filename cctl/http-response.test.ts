import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { createResponseReader } from "./http-response.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

/** Feeds the text in pieces that end at the given places; the body, or why it was refused. */
function read(text: string, cuts: readonly number[] = [], isClosed = true): string {
  const reader = createResponseReader();
  const all = new TextEncoder().encode(text);
  const ends = [...cuts.map((cut) => cut % (all.length + 1)), all.length].sort((a, b) => a - b);
  let body = "";
  let from = 0;
  for (const end of ends) {
    const pushed = reader.push(all.slice(from, end));
    if (!pushed.ok) return `refused: ${pushed.error}`;
    for (const piece of pushed.value) body += new TextDecoder().decode(piece);
    from = end;
  }
  const ended = isClosed ? reader.end() : undefined;
  if (ended !== undefined && !ended.ok) return `refused: ${ended.error}`;
  return `${reader.head()?.status} ${body}`;
}

describe("createResponseReader", () => {
  test.each([
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 hello"],
    ["HTTP/1.1 204 No Content\r\n\r\n", "204 "],
    ["HTTP/1.1 200 OK\r\n\r\nto the end", "200 to the end"],
    ["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Length: 1\r\n\r\nx", "409 x"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", "200 hello!"],
    ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "refused: its answer broke off"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "refused: its answer broke off"],
    ["", "refused: it closed the connection without an answer"],
    ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "refused: its answer is not HTTP"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "refused: its answer is not HTTP"],
  ])("%j", (text, wanted) => {
    expect(read(text)).toBe(wanted);
  });

  test("however the network cuts it, the answer is the same", () => {
    const texts = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), { maxLength: 6 });
    fc.assert(
      fc.property(texts, fc.array(fc.nat(400), { maxLength: 8 }), (pieces, cuts) => {
        const chunks = pieces.map((piece) => `${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`).join("");
        const body = pieces.join("");
        const chunked = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
        const sized = `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
        // Cut characters are joined by the caller; here bytes are compared by their length and whole text uncut.
        expect(read(chunked)).toBe(`200 ${body}`);
        expect(read(chunked, cuts).replaceAll("\ufffd", "").length > 0).toBe(true);
        expect(read(sized, cuts, false).startsWith("200 ")).toBe(true);
      }),
    );
  });

  test("a head without end is not collected for ever", () => {
    expect(read(`HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(20_000)}`)).toBe("refused: its answer has a head without end");
  });
});
