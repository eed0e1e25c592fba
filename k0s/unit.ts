import type { UnitCommand } from "./model.ts";
import { readFlags } from "./parse.ts";
import { K0S_BINARY, K0S_DATA } from "./paths.ts";

/** What k0s may spell out although nobody asked for it: its own defaults. */
const DEFAULT_FLAGS: ReadonlyMap<string, string> = new Map([
  ["data-dir", K0S_DATA],
  ["kubelet-root-dir", `${K0S_DATA}/kubelet`],
  ["status-socket", "/run/k0s/status.sock"],
  ["config", "/etc/k0s/k0s.yaml"],
]);

/** The command that `k0s install` makes of these arguments. */
export function wantedCommand(installArgv: readonly string[]): UnitCommand {
  const [, command = "", ...flags] = installArgv;
  return { binary: K0S_BINARY, command, flags: readFlags(flags) };
}

/** An existing unit that does the same is kept; `--force` is for one that does not. */
export function isSameCommand(found: UnitCommand, wanted: UnitCommand): boolean {
  if (found.binary !== wanted.binary || found.command !== wanted.command) return false;
  const isDefault = (name: string, value: string): boolean => DEFAULT_FLAGS.get(name) === value;
  for (const [name, value] of wanted.flags) {
    if (found.flags.get(name) !== value && !(found.flags.get(name) === undefined && isDefault(name, value)))
      return false;
  }
  return [...found.flags].every(([name, value]) => wanted.flags.get(name) === value || isDefault(name, value));
}
