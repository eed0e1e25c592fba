import { type AppError, fail } from "../kit/app-error.ts";
import { ok, type Result } from "../kit/result.ts";
import { isMap } from "./merge.ts";
import type { K0sStatus, UnitCommand } from "./model.ts";

/** `v1.36.3+k0s.2`, also with the stand-in's `-sim`. */
const VERSION = /^v\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?\+k0s\.\d+(?:-[0-9A-Za-z.]+)?$/;

export function parseVersion(stdout: string): Result<string, AppError> {
  const text = stdout.trim();
  return VERSION.test(text)
    ? ok(text)
    : fail("k0s-version", `k0s version printed ${JSON.stringify(text.slice(0, 80))}`);
}

/** `k0s status -o json` (facts: section 2.3). */
export function parseStatus(stdout: string): Result<K0sStatus, AppError> {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return fail("k0s-status", "k0s status printed no JSON");
  }
  if (!isMap(json) || typeof json["Version"] !== "string" || typeof json["Pid"] !== "number") {
    return fail("k0s-status", "k0s status printed JSON without Version and Pid");
  }
  const role = readRole(json["Role"], json["Workloads"] === true, json["SingleNode"] === true);
  if (role === undefined) return fail("k0s-status", `k0s status names an unknown role ${JSON.stringify(json["Role"])}`);
  const connection = json["WorkerToAPIConnectionStatus"];
  const hasKubelet = role !== "controller";
  return ok({
    version: json["Version"],
    pid: json["Pid"],
    role,
    ...(hasKubelet && isMap(connection) ? { isConnected: connection["Success"] === true } : {}),
    ...(hasKubelet && isMap(connection) && typeof connection["Message"] === "string" && connection["Message"] !== ""
      ? { connectionMessage: connection["Message"] }
      : {}),
  });
}

function readRole(role: unknown, hasWorkloads: boolean, isSingle: boolean): K0sStatus["role"] | undefined {
  if (role === "worker") return "worker";
  if (role !== "controller") return undefined;
  if (isSingle) return "single";
  return hasWorkloads ? "controller+worker" : "controller";
}

/** systemd's own escapes, of which k0s writes only `\x20` for a space (facts: section 3.1). */
const unescapeArgument = (text: string): string =>
  text.replace(/\\x([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

/** ExecStart of a unit that `k0s install` wrote: `BINARY controller --name=value …`. Anything else is not one. */
export function parseUnit(text: string): Result<UnitCommand, AppError> {
  const line = /^ExecStart=(.+)$/m.exec(text)?.[1]?.trim();
  const [binary, command, ...args] = (line ?? "").split(/\s+/).map(unescapeArgument);
  if (binary === undefined || binary === "" || command === undefined) {
    return fail("k0s-unit", "the unit of k0s has no ExecStart that starts k0s");
  }
  return ok({ binary, command, flags: readFlags(args) });
}

/** The switches that Corium passes; every other flag of ours has a value, which may itself begin with dashes. */
const SWITCHES = new Set(["single", "enable-worker", "no-taints", "force"]);

/** `--name=value`, `--name value` and `--switch`, as Go's pflag reads them. */
export function readFlags(args: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (let index = 0; index < args.length; index += 1) {
    const [, name, value] = /^--([^=]+)(?:=(.*))?$/s.exec(args[index] ?? "") ?? [];
    if (name === undefined) continue;
    if (value !== undefined || SWITCHES.has(name)) flags.set(name, value ?? "true");
    else {
      index += 1;
      flags.set(name, args[index] ?? "");
    }
  }
  return flags;
}
