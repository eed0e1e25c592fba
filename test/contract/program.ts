/**
 * The k0s under test: `K0S=/path bun test test/contract` takes a real one, otherwise the stand-in is built. The tests
 * are the same; where a real one needs root or systemd, the stand-in runs below a folder that stands for `/`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildStandIn } from "../qemu/k0s-sim/build.ts";

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

export interface Running {
  readonly pid: number;
  log(): Promise<string>;
  /** SIGTERM, as systemd does; gives the exit status. */
  stop(): Promise<number>;
  /** Until it ends by itself. */
  readonly exited: Promise<number>;
}

export interface Program {
  /** A fresh folder; for the stand-in it stands for `/`. */
  readonly directory: string;
  /** A path of the host, where the test finds it. */
  host(path: string): string;
  write(path: string, content: string): void;
  run(argv: readonly string[], options?: RunOptions): Promise<Ran>;
  start(argv: readonly string[], options?: RunOptions): Running;
  dispose(): Promise<void>;
}

export const isReal = process.env["K0S"] !== undefined;

/** What only a real one needs. */
export const realNeeds = (...needs: readonly string[]): readonly string[] => (isReal ? needs : []);

let built: Promise<string> | undefined;

async function programPath(): Promise<string> {
  const given = process.env["K0S"];
  if (given !== undefined) return given;
  built ??= (async () => {
    const directory = mkdtempSync(join(tmpdir(), "k0s-sim-"));
    process.on("exit", () => {
      rmSync(directory, { recursive: true, force: true });
    });
    await buildStandIn(directory);
    return join(directory, "usr/bin/k0s");
  })();
  return await built;
}

export async function openProgram(): Promise<Program> {
  const program = await programPath();
  const directory = mkdtempSync(join(tmpdir(), "k0s-contract-"));
  mkdirSync(join(directory, "etc/k0s/sim-faults"), { recursive: true });
  const running: Running[] = [];
  const host = (path: string): string => (isReal ? path : join(directory, path));
  const environment = (extra: RunOptions["env"]): Record<string, string> => ({
    PATH: process.env["PATH"] ?? "",
    HOME: "/root",
    ...(isReal ? {} : { K0S_SIM_ROOT: directory, K0S_SIM_BUN: process.execPath }),
    ...extra,
  });
  return {
    directory,
    host,
    write: (path, content) => {
      mkdirSync(dirname(host(path)), { recursive: true });
      writeFileSync(host(path), content);
    },
    run: async (argv, options = {}) => {
      const child = Bun.spawn([program, ...argv], {
        cwd: directory,
        env: environment(options.env),
        stdin: options.stdin === undefined ? "ignore" : Buffer.from(options.stdin),
        stdout: "pipe",
        stderr: "pipe",
        timeout: options.timeoutMs ?? 60_000,
      });
      const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      return { exitCode, stdout, stderr };
    },
    start: (argv, options = {}) => {
      const log = join(directory, `log-${running.length}`);
      const child = Bun.spawn([program, ...argv], {
        cwd: directory,
        env: environment(options.env),
        stdin: "ignore",
        stdout: "ignore",
        stderr: Bun.file(log),
      });
      const started: Running = {
        pid: child.pid,
        log: () => Bun.file(log).text(),
        exited: child.exited,
        stop: async () => {
          child.kill("SIGTERM");
          return await child.exited;
        },
      };
      running.push(started);
      return started;
    },
    dispose: async () => {
      await Promise.all(running.map((each) => each.stop()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
