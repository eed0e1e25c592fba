/** The compiled `corium serve` as a unit starts it, each on a state folder of its own. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { RENDER_VERSION } from "../../apply/render-version.ts";
import { compile } from "../../iso/compile.ts";
import { nodePaths } from "../../kit/paths.ts";
import type { Baseline } from "../../state/model.ts";
import { openState, type State } from "../../state/open.ts";
import { recordBaseline } from "./in-service.ts";

export interface Daemon {
  readonly stateDir: string;
  readonly child: Bun.Subprocess<"ignore", "ignore", "pipe">;
  readonly port: number;
  readonly fingerprint: string;
  readonly said: () => string;
  get(path: string): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>;
  enrolment(): { readonly code?: string; readonly fingerprint?: string };
}

export interface DaemonProgram {
  readonly folder: string;
  readonly corium: string;
  readonly newStateDir: () => string;
  /** Until it listens, or until it ends. */
  readonly start: (stateDir?: string, env?: Readonly<Record<string, string>>, cwd?: string) => Promise<Daemon>;
  readonly stop: (daemon: Daemon, signal?: "SIGTERM" | "SIGKILL") => Promise<number>;
  /** For `beforeAll`, and for `afterAll`. */
  readonly build: () => void;
  readonly dispose: () => Promise<void>;
}

export function daemonProgram(): DaemonProgram {
  const folder = mkdtempSync(join(tmpdir(), "corium-serve-"));
  const corium = join(folder, "corium");
  const running = new Set<Bun.Subprocess>();
  let count = 0;
  const newStateDir = (): string => join(folder, `state-${(count += 1)}`);
  return {
    folder,
    corium,
    newStateDir,
    build: () => compile(join(import.meta.dir, "../../main.ts"), corium, "1.2.3"),
    async dispose() {
      for (const child of running) {
        child.kill("SIGKILL");
        await child.exited;
      }
      rmSync(folder, { recursive: true, force: true });
    },
    async start(stateDir = newStateDir(), env = {}, cwd = folder) {
      const child = Bun.spawn([corium, "serve", "--state-dir", stateDir, "--address", "127.0.0.1", "--port", "0"], {
        cwd,
        env: { PATH: process.env["PATH"] ?? "", TMPDIR: folder, ...env },
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      running.add(child);
      let said = "";
      const listening = Promise.withResolvers<void>();
      void (async () => {
        for await (const chunk of child.stderr) {
          said += new TextDecoder().decode(chunk);
          if (said.includes("listening on port")) listening.resolve();
        }
        listening.resolve();
      })();
      await listening.promise;
      const found = /listening on port (\d+), fingerprint (\S+)/.exec(said);
      return {
        stateDir,
        child,
        port: Number(found?.[1] ?? 0),
        fingerprint: found?.[2] ?? "",
        said: () => said,
        async get(path) {
          const answer = await fetch(`http://localhost${path}`, { unix: join(stateDir, "run/api.sock") });
          return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
        },
        enrolment: () =>
          JSON.parse(readFileSync(join(stateDir, "run/enrolment.json"), "utf8")) as Record<string, string>,
      };
    },
    async stop(daemon, signal = "SIGTERM") {
      daemon.child.kill(signal);
      const status = await daemon.child.exited;
      running.delete(daemon.child);
      return status;
    },
  };
}

/** What a bootstrap with this document leaves in the folder. */
export function putInService(
  stateDir: string,
  text: string,
  { rendered = {}, also }: { readonly rendered?: Baseline["rendered"]; readonly also?: (state: State) => void } = {},
): void {
  mkdirSync(stateDir, { recursive: true });
  const paths = nodePaths(stateDir);
  writeFileSync(join(stateDir, "config.yaml"), text);
  const opened = openState(paths);
  if (!opened.ok) throw new Error(opened.error.message);
  const state = opened.value;
  recordBaseline(state, text, { hostname: hostname(), rendered, renderVersion: RENDER_VERSION, atMs: Date.now() });
  state.meta.set("in-service-at-ms", "1");
  also?.(state);
  writeFileSync(paths.marker, "");
  state.close();
}
