/** One HTTPS request over a connection of its own, with everything of TLS in the caller's hand. */
import { connect } from "node:tls";

import type { KeyPair } from "../../pki/model.ts";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface ClientOptions {
  readonly port: number;
  readonly credentials?: KeyPair;
  /** A session to take up again. */
  readonly session?: Buffer;
  readonly onSession?: (session: Buffer) => void;
  /** Between two requests. */
  readonly onAnswer?: (answer: Answer) => void;
}

/** The requests one after the other over one connection; rejects when it breaks. */
export function request(options: ClientOptions, requests: readonly string[]): Promise<readonly Answer[]> {
  const { credentials } = options;
  return new Promise((resolve, reject) => {
    const answers: Answer[] = [];
    let received = "";
    const socket = connect({
      host: "127.0.0.1",
      port: options.port,
      rejectUnauthorized: false,
      ...(credentials === undefined ? {} : { cert: credentials.certificate, key: credentials.privateKey }),
      ...(options.session === undefined ? {} : { session: options.session }),
    });
    const sendNext = (): void => {
      const next = requests[answers.length];
      if (next === undefined) {
        socket.destroy();
        resolve(answers);
      } else socket.write(`${next} HTTP/1.1\r\nhost: node\r\ncontent-length: 0\r\n\r\n`);
    };
    socket.setTimeout(20_000, () => socket.destroy(new Error("timed out")));
    socket.on("secureConnect", sendNext);
    socket.on("session", (session) => options.onSession?.(session));
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("closed early")));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const end = received.indexOf("\r\n\r\n");
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1] ?? 0);
      if (end < 0 || received.length < end + 4 + length) return;
      const status = Number(received.slice(9, 12));
      const answer = { status, body: received.slice(end + 4, end + 4 + length) };
      answers.push(answer);
      options.onAnswer?.(answer);
      received = received.slice(end + 4 + length);
      sendNext();
    });
  });
}
