/** A TLS peer that answers requests as a test says, and remembers them: for what a real node would rarely do. */
import { type Server, createServer } from "node:tls";
import type { AddressInfo } from "node:net";
import { realRandom } from "../../host/random.ts";
import { mintServer } from "../../pki/driver.ts";
import { fingerprintOfPem } from "../../pki/fingerprint.ts";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface Scripted {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object becomes JSON. */
  readonly body?: unknown;
  /** The connection is cut after the body was promised to go on. */
  readonly breaksOff?: true;
}

export interface ScriptedNode {
  readonly address: string;
  readonly fingerprint: string;
  readonly requests: readonly Received[];
  readonly close: () => void;
}

export async function scriptedNode(answer: (request: Received) => Scripted): Promise<ScriptedNode> {
  const pair = await mintServer({ hostname: "scripted", nowMs: Date.now(), random: realRandom });
  const requests: Received[] = [];
  const server: Server = createServer({ key: pair.privateKey, cert: pair.certificate, minVersion: "TLSv1.3" });
  server.on("secureConnection", (socket) => {
    let text = "";
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      const request = parse(text);
      if (request === undefined) return;
      text = "";
      requests.push(request);
      const { status = 200, headers = {}, body = "", breaksOff } = answer(request);
      const content = typeof body === "string" ? body : JSON.stringify(body);
      const length = Buffer.byteLength(content) + (breaksOff === true ? 1 : 0);
      const all = { "Content-Type": "application/json", "Content-Length": String(length), ...headers };
      const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${status} X\r\n${lines.join("")}\r\n${content}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    fingerprint: fingerprintOfPem(pair.certificate) ?? "",
    requests,
    close: () => void server.close(),
  };
}

function parse(text: string): Received | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const body = text.slice(end + 4);
  if (Buffer.byteLength(body) < Number(headers.get("content-length") ?? 0)) return undefined;
  const [method = "", path = ""] = first.split(" ");
  return { method, path, headers, body };
}
