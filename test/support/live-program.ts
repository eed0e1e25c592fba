/** `corium serve` as it is, on a state directory of its own, of a node in service; asked over its root-only socket. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { nodePaths } from "../../kit/paths.ts";
import { openState, type State } from "../../state/open.ts";
import { recordBaseline } from "./in-service.ts";

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly etag: string | undefined;
}

export interface LiveProgram {
  readonly stateDir: string;
  /** The same database, opened beside the program. */
  readonly state: State;
  post(path: string, body: object, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Of a route that answers lines. */
  lines(path: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  stop(): Promise<number>;
}

const MAIN = join(import.meta.dir, "../../main.ts");

/** `document`: what the node runs, as its records say. Nothing of this machine is in them. */
export async function startProgram(document: string): Promise<LiveProgram> {
  const stateDir = mkdtempSync(join(tmpdir(), "corium-live-"));
  const paths = nodePaths(stateDir, `${stateDir}/run`);
  mkdirSync(dirname(paths.database), { recursive: true });
  const opened = openState(paths);
  if (!opened.ok) throw new Error(opened.error.message);
  const state = opened.value;
  recordBaseline(state, document);
  state.meta.set("in-service-at-ms", "1");
  writeFileSync(paths.marker, "");
  writeFileSync(`${stateDir}/config.yaml`, document);
  const child = Bun.spawn(
    [process.execPath, MAIN, "serve", "--state-dir", stateDir, "--address", "127.0.0.1", "--port", "0"],
    {
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "", TMPDIR: stateDir },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    },
  );
  await listening(child.stderr);
  const socket = `${stateDir}/run/api.sock`;
  const ask = (path: string, more: RequestInit = {}): Promise<Response> =>
    fetch(`http://localhost${path}`, { unix: socket, ...more });
  return {
    stateDir,
    state,
    async post(path, body, headers = {}) {
      const answer = await ask(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
      const json = (await answer.json()) as Record<string, unknown>;
      return { status: answer.status, body: json, etag: answer.headers.get("etag") ?? undefined };
    },
    lines: async (path) =>
      (await (await ask(path)).text())
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    async stop() {
      child.kill("SIGTERM");
      const status = await child.exited;
      state.close();
      rmSync(stateDir, { recursive: true, force: true });
      return status;
    },
  };
}

/** Until it says so; what it says later is read and dropped, so that it never waits for a reader. */
async function listening(stderr: ReadableStream<Uint8Array>): Promise<void> {
  const heard = Promise.withResolvers<void>();
  void (async () => {
    let said = "";
    for await (const chunk of stderr) {
      said += new TextDecoder().decode(chunk);
      if (said.includes("listening on port")) heard.resolve();
    }
    heard.reject(new Error(`it ended: ${said}`));
  })();
  await heard.promise;
}
