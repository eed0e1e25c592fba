/** What of a node is otherwise than it was recorded although nobody asked for it. Named, never corrected. */
import type { ConfigReason } from "../api/contract.ts";
import type { UnitStatus } from "../kit/ports.ts";

export interface FoundFile {
  readonly path: string;
  readonly is: "as-recorded" | "changed" | "missing" | "unreadable";
  readonly diff?: string;
}

export interface FoundUnit {
  readonly name: string;
  readonly status: Pick<UnitStatus, "loadState" | "activeState" | "unitFileState">;
  /** It runs another command than the one it was installed with. */
  readonly isOther?: boolean;
}

/** Undefined: that was not looked at, or could not be told. */
export interface FoundNode {
  readonly hostname?: string;
  readonly files: readonly FoundFile[];
  readonly units: readonly FoundUnit[];
  readonly arrays: readonly {
    readonly name: string;
    readonly state: string;
    readonly active: number;
    readonly expected: number;
  }[];
  readonly mounts: readonly { readonly path: string; readonly mounted: boolean }[];
  readonly links: readonly { readonly name: string; readonly up: boolean }[];
}

export function driftReasons(recorded: { readonly hostname: string }, found: FoundNode): readonly ConfigReason[] {
  const reasons: ConfigReason[] = [];
  for (const file of found.files) reasons.push(...fileReason(file));
  for (const unit of found.units) reasons.push(...unitReason(unit));
  for (const { name, state, active, expected } of found.arrays) {
    if (active >= expected && state !== "missing" && state !== "inactive" && state !== "failed") continue;
    const message = `array ${name} is ${state} with ${active} of ${expected} members`;
    reasons.push({ code: "array-changed", message, path: name });
  }
  for (const { path, mounted } of found.mounts) {
    if (!mounted) reasons.push({ code: "mount-changed", message: `${path} is not mounted`, path });
  }
  for (const { name, up } of found.links) {
    const message = `overlay ${name} is down, or has other addresses than it was given`;
    if (!up) reasons.push({ code: "link-changed", message, path: name });
  }
  if (found.hostname !== undefined && found.hostname !== "" && found.hostname !== recorded.hostname) {
    const message = `the hostname is ${found.hostname}, it was set to ${recorded.hostname}`;
    reasons.push({ code: "hostname", message });
  }
  return reasons;
}

function fileReason({ path, is, diff }: FoundFile): readonly ConfigReason[] {
  switch (is) {
    case "as-recorded":
      return [];
    case "changed":
      return [
        {
          code: "file-changed",
          message: `${path} was changed since it was applied`,
          path,
          ...(diff === undefined ? {} : { diff }),
        },
      ];
    case "missing":
      return [{ code: "file-missing", message: `${path} is gone: it was written by Corium`, path }];
    case "unreadable":
      return [{ code: "file-missing", message: `${path} can't be read: it was written by Corium`, path }];
    default:
      return is satisfies never;
  }
}

/** On its way up, or being restarted: not stopped by anybody. */
const RUNNING = new Set(["active", "activating", "reloading", "deactivating"]);

function unitReason({ name, status, isOther }: FoundUnit): readonly ConfigReason[] {
  const is = differenceOf(status, isOther === true);
  return is === undefined ? [] : [{ code: "unit-changed", message: `${name} ${is}`, path: name }];
}

function differenceOf({ loadState, activeState, unitFileState }: FoundUnit["status"], isOther: boolean) {
  if (loadState === "not-found") return "is gone";
  if (loadState === "masked") return "is masked";
  if (isOther) return "runs another command than it was installed with";
  if (unitFileState !== "enabled") return `is ${unitFileState || "not enabled"}, it was enabled`;
  return RUNNING.has(activeState) ? undefined : `is ${activeState}, it was active`;
}
