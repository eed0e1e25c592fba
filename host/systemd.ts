import type { AppError } from "../kit/app-error.ts";
import { appError } from "../kit/app-error.ts";
import type { Exec, Files, Systemd, UnitStatus } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";

/** k0s may take minutes to start; systemd's own start timeout ends the wait before ours does. */
const START_TIMEOUT_MS = 15 * 60_000;
const PROPERTIES = "LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,MainPID";

export function realSystemd(exec: Exec, files: Pick<Files, "keep">): Systemd {
  const systemctl = async (args: readonly string[], timeoutMs = 60_000): Promise<Result<string, AppError>> => {
    const argv = ["systemctl", "--no-ask-password", "--no-pager", ...args];
    const result = await exec({ argv, timeoutMs });
    if (result.exitCode === 0) return ok(result.stdout);
    return err(classify(args, result.failure ?? "", result.stderr, result.timedOut));
  };
  const act = async (args: readonly string[], timeoutMs?: number): Promise<Result<void, AppError>> => {
    const result = await systemctl(args, timeoutMs);
    return result.ok ? ok(undefined) : result;
  };
  /** systemctl changes links below /etc itself; the state partition gets the same. */
  const change = async (verb: "enable" | "disable", unit: string): Promise<Result<void, AppError>> => {
    const changed = await act([verb, "--", unit]);
    return changed.ok ? files.keep("/etc/systemd/system/") : changed;
  };

  return {
    daemonReload: () => act(["daemon-reload"]),
    start: (unit, options) =>
      act(["start", ...(options?.noBlock === true ? ["--no-block"] : []), "--", unit], START_TIMEOUT_MS),
    stop: (unit) => act(["stop", "--", unit], START_TIMEOUT_MS),
    restart: (unit) => act(["restart", "--", unit], START_TIMEOUT_MS),
    enable: (unit) => change("enable", unit),
    disable: (unit) => change("disable", unit),
    resetFailed: (unit) => act(["reset-failed", "--", unit]),
    async status(unit) {
      const shown = await systemctl(["show", `--property=${PROPERTIES}`, "--", unit]);
      return shown.ok ? ok(parseUnitStatus(shown.value)) : shown;
    },
    async journalTail(unit, lines) {
      const argv = ["journalctl", "--no-pager", "--output=cat", `--lines=${lines}`, `--unit=${unit}`];
      const result = await exec({ argv, timeoutMs: 20_000 });
      if (result.exitCode !== 0) {
        return err(appError("journal", `the journal of ${unit} can't be read`, { details: lastLines(result.stderr) }));
      }
      return ok(result.stdout.split("\n").filter((line) => line !== ""));
    },
  };
}

/** `systemctl show` answers for units that do not exist too: LoadState=not-found, exit status 0. */
export function parseUnitStatus(text: string): UnitStatus {
  const values = new Map<string, string>();
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    if (at > 0) values.set(line.slice(0, at), line.slice(at + 1));
  }
  return {
    loadState: values.get("LoadState") ?? "",
    activeState: values.get("ActiveState") ?? "",
    subState: values.get("SubState") ?? "",
    unitFileState: values.get("UnitFileState") ?? "",
    restarts: Number(values.get("NRestarts") ?? 0),
    result: values.get("Result") ?? "",
    mainPid: Number(values.get("MainPID") ?? 0),
  };
}

function classify(args: readonly string[], failure: string, stderr: string, timedOut: boolean): AppError {
  const what = `systemctl ${args.filter((arg) => !arg.startsWith("--")).join(" ")}`;
  const details = lastLines(stderr);
  if (failure !== "") return appError("systemd-missing", `${what} could not be run: there is no systemctl`);
  if (timedOut) return appError("systemd-timeout", `${what} took too long`, { details });
  // Exit status 5, but also 1 from older versions: the text decides (LC_ALL=C).
  if (/not found|not loaded|does not exist/.test(stderr)) {
    return appError("unit-not-found", `${what} failed: there is no such unit`, { details });
  }
  return appError("systemd", `${what} failed`, { details });
}

const lastLines = (text: string): readonly string[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-5);
