import { spawn } from "node:child_process";

import type { Exec, ExecRequest, ExecResult } from "../kit/ports.ts";
import { Secret } from "../kit/secret.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 * 1024;
const KILL_AFTER_MS = 2_000;
/** A program that waits for a dead disk ends only when the kernel lets it; nobody waits for that. */
const GIVE_UP_AFTER_MS = 2_000;
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface ExecOptions {
  /** `PATH` of the programs; the image's by default, never our own. */
  readonly path?: string;
  /** How a process group is signalled; a test has one that nothing reaches. */
  readonly kill?: Kill;
}

type Kill = (pid: number | undefined, signal: "SIGTERM" | "SIGKILL") => void;

/**
 * Programs get an environment made here and nothing of ours: a variable that changes how a tool prints or what it
 * loads must not arrive by accident. `LC_ALL=C` because parsers and classifiers read English.
 */
export function realExec(options: ExecOptions = {}): Exec {
  const base = { PATH: options.path ?? SYSTEM_PATH, HOME: "/root", LC_ALL: "C", TERM: "dumb" };
  return (request) => run(request, { ...base, ...request.env }, options.kill ?? killGroup);
}

function run(request: ExecRequest, env: Readonly<Record<string, string>>, kill: Kill): Promise<ExecResult> {
  const started = performance.now();
  const limit = request.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
  const stdout = capture(limit);
  const stderr = capture(limit);
  let timedOut = false;

  return new Promise((resolve) => {
    const settle = (more: Pick<ExecResult, "exitCode" | "signal"> & Partial<ExecResult>): void =>
      resolve({
        argv: request.argv,
        stdout: stdout.text(),
        stderr: stderr.text(),
        timedOut,
        truncated: stdout.isCut() || stderr.isCut(),
        durationMs: Math.round(performance.now() - started),
        ...more,
      });

    const [program, ...rest] = request.argv;
    if (program === undefined) {
      settle({ exitCode: null, signal: null, failure: "spawn" });
      return;
    }
    // Detached: its own session and process group, so that a kill reaches its children too.
    let child: ReturnType<typeof spawn>;
    try {
      child = spawn(program, rest, { detached: true, env: { ...env }, cwd: "/", stdio: ["pipe", "pipe", "pipe"] });
    } catch (thrown) {
      settle({ exitCode: null, signal: null, failure: failureOf(thrown) });
      return;
    }

    const abandon = (): void => {
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
      settle({ exitCode: null, signal: null });
    };
    let killTimer: ReturnType<typeof setTimeout> | undefined;
    const timer = setTimeout(() => {
      timedOut = true;
      kill(child.pid, "SIGTERM");
      killTimer = setTimeout(() => {
        kill(child.pid, "SIGKILL");
        killTimer = setTimeout(abandon, GIVE_UP_AFTER_MS);
      }, KILL_AFTER_MS);
    }, request.timeoutMs ?? DEFAULT_TIMEOUT_MS);

    child.on("error", (thrown) => {
      clearTimeout(timer);
      clearTimeout(killTimer);
      settle({ exitCode: null, signal: null, failure: failureOf(thrown) });
    });
    // Both streams are always drained: a child that fills an unread pipe would hang for ever.
    child.stdout?.on("data", stdout.add);
    child.stderr?.on("data", stderr.add);

    let closed = false;
    child.on("close", (exitCode, signal) => {
      closed = true;
      clearTimeout(timer);
      // After a timeout the KILL still goes to the group: a grandchild may have ignored TERM and closed its pipes.
      if (timedOut) kill(child.pid, "SIGKILL");
      clearTimeout(killTimer);
      settle({ exitCode, signal });
    });
    // A daemon that the program left behind may hold the pipes open; the program's end is what was asked about.
    child.on("exit", (exitCode, signal) => {
      setTimeout(() => {
        if (closed) return;
        clearTimeout(timer);
        clearTimeout(killTimer);
        if (timedOut) kill(child.pid, "SIGKILL");
        child.stdout?.destroy();
        child.stderr?.destroy();
        settle({ exitCode, signal });
      }, KILL_AFTER_MS + 500).unref();
    });

    // EPIPE of a program that does not read its stdin is its own business: the exit status says what came of it.
    child.stdin?.on("error", () => {});
    child.stdin?.end(stdinBytes(request.stdin));
  });
}

function stdinBytes(stdin: ExecRequest["stdin"]): string | Uint8Array {
  if (stdin instanceof Secret) return stdin.reveal();
  return stdin ?? "";
}

function capture(limit: number): { add: (chunk: Buffer) => void; text: () => string; isCut: () => boolean } {
  const chunks: Buffer[] = [];
  let size = 0;
  let cut = false;
  return {
    add(chunk) {
      const room = limit - size;
      if (chunk.length > room) cut = true;
      if (room <= 0) return;
      const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
      chunks.push(kept);
      size += kept.length;
    },
    text: () => Buffer.concat(chunks).toString("utf8"),
    isCut: () => cut,
  };
}

function killGroup(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The whole group is gone already.
  }
}

function failureOf(thrown: unknown): "not-found" | "not-executable" | "spawn" {
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  if (code === "ENOENT") return "not-found";
  return code === "EACCES" || code === "ENOEXEC" ? "not-executable" : "spawn";
}
