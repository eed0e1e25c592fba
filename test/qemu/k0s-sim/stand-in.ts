/**
 * A stand-in for k0s in tests: command line, texts, exit codes, files and ports of k0s as documented and read in its
 * source, without Kubernetes behind them. It says so in its version, its help and its log.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const SIM_VERSION = "v1.36.4+k0s.1-sim";
export const BANNER = "k0s-sim: a stand-in for k0s in tests, this is not Kubernetes";

/** What k0s prints as `Error: …` before it exits with 1. */
export class SimError extends Error {}

/** A folder that stands for `/`: tests without root install and run below it, and systemd is not called. */
export const simRoot = process.env["K0S_SIM_ROOT"] ?? "";

export const rooted = (path: string): string => (simRoot === "" ? path : join(simRoot, path));

/** The program as the unit must start it: the launcher, not the runtime. */
export const programPath = (): string => process.env["K0S_SIM_EXE"] ?? "/usr/bin/k0s";

export type LogLevel = "info" | "warning" | "error";

/** logrus' text format, on stderr. */
export function log(level: LogLevel, message: string, component?: string): void {
  const time = new Date().toISOString().replace("T", " ").replace(/\..*/, "");
  const tail = component === undefined ? "" : ` component=${component}`;
  process.stderr.write(`time="${time}" level=${level} msg=${JSON.stringify(message)}${tail}\n`);
}

/** Faults that a test switches on: a file of that name in /etc/k0s/sim-faults; its content is the argument. */
export type Fault =
  /** `controller` and `worker` exit 1 a moment after each start. */
  | "restart-loop"
  /** The status socket takes the request and never answers. */
  | "hang-status"
  /** Nothing answers until the file is gone: starting for ever. */
  | "never-ready"
  /** /readyz says 500. */
  | "not-ready"
  /** Content: names of charts, by line, whose release fails. */
  | "chart-fails"
  /** Content: names of charts, by line, whose release is not begun yet. */
  | "chart-waits"
  /** `install` exits 1. */
  | "install-fails"
  /** `reset` leaves a mount behind and fails, the second run too. */
  | "reset-busy"
  /** Milliseconds that `controller` takes until it answers. */
  | "slow-start"
  /** Milliseconds that `kubectl` takes, and a word: then only calls with it (`60000 applications.argoproj.io`). */
  | "slow-kubectl";

export function fault(name: Fault): string | undefined {
  const path = rooted(`/etc/k0s/sim-faults/${name}`);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}

/** For tests that count calls: one line per invocation, kept beside the faults when the folder is there. */
export function recordCall(argv: readonly string[]): void {
  if (existsSync(rooted("/etc/k0s/sim-faults")))
    appendFileSync(rooted("/etc/k0s/sim-faults/calls.log"), `${JSON.stringify(argv)}\n`);
}
