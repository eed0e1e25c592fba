/** One TLS connection of an operator, kept open: which connection a request comes over is what some answers depend on. */
import { connect } from "node:tls";
import type { KeyPair } from "../../pki/model.ts";

export interface OperatorAnswer {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface OperatorConnection {
  readonly call: (method: "GET" | "POST", path: string, json?: unknown) => Promise<OperatorAnswer>;
  readonly close: () => void;
}

export async function openOperator(port: number, credentials: KeyPair): Promise<OperatorConnection> {
  const { certificate: cert, privateKey: key } = credentials;
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, cert, key });
  await new Promise<void>((resolve, reject) => {
    socket.once("secureConnect", resolve);
    socket.once("error", reject);
  });
  socket.on("error", () => socket.destroy());
  return {
    close: () => void socket.destroy(),
    call: (method, path, json) =>
      new Promise((resolve, reject) => {
        let text = "";
        const broken = (): void => reject(new Error(`${method} ${path}: the connection was closed`));
        const read = (chunk: Buffer): void => {
          text += chunk.toString("latin1");
          const body = bodyOf(text);
          if (body === undefined) return;
          socket.off("data", read);
          socket.off("close", broken);
          resolve({ status: Number(text.slice(9, 12)), json: JSON.parse(body) as OperatorAnswer["json"] });
        };
        socket.on("data", read);
        socket.once("close", broken);
        const sent = json === undefined ? "" : JSON.stringify(json);
        const type = json === undefined ? "" : "content-type: application/json\r\n";
        const length = Buffer.byteLength(sent);
        socket.write(`${method} ${path} HTTP/1.1\r\nhost: node\r\n${type}content-length: ${length}\r\n\r\n${sent}`);
      }),
  };
}

/** Undefined until all of it is there. */
function bodyOf(text: string): string | undefined {
  const at = text.indexOf("\r\n\r\n");
  if (at < 0) return undefined;
  const body = text.slice(at + 4);
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, at))?.[1];
  if (length !== undefined) return body.length < Number(length) ? undefined : body;
  if (!body.endsWith("0\r\n\r\n")) return undefined;
  let left = body;
  let whole = "";
  for (;;) {
    const end = left.indexOf("\r\n");
    const size = Number.parseInt(left.slice(0, end), 16);
    if (size === 0) return whole;
    whole += left.slice(end + 2, end + 2 + size);
    left = left.slice(end + 4 + size);
  }
}

/** One request over a connection of its own. */
export async function askAs(
  port: number,
  credentials: KeyPair,
  ...request: Parameters<OperatorConnection["call"]>
): Promise<OperatorAnswer> {
  const connection = await openOperator(port, credentials);
  const answer = await connection.call(...request);
  connection.close();
  return answer;
}
