/** What this node made, against what the document says now that it should have been: the one is not turned into the other. */
import type { LuksSpec, RaidSpec } from "../config/document.ts";
import type { MdArray } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import { levelName } from "../raid/plan.ts";

const differs = (path: string, message: string): Finding => ({
  severity: "error",
  code: "own-differs",
  path,
  message,
  hint: "correct the document to what is there; or give up what is on it, with wipe: true and --wipe-own",
});

export function lintOwnArray(spec: RaidSpec, field: string, array: MdArray): readonly Finding[] {
  const { level, expectedMembers, memberPaths } = array;
  const findings: Finding[] = [];
  const made = `array ${spec.name} (${array.uuid}) is this node's and was made`;
  if (level !== undefined && level !== levelName(spec.level))
    findings.push(differs(`${field}.level`, `${made} as ${level}, not ${levelName(spec.level)}`));
  if (expectedMembers !== undefined && expectedMembers !== spec.devices.length) {
    const spares = memberPaths.length - expectedMembers;
    const wanted = `not of ${spec.devices.length} and ${spec.spares.length}`;
    findings.push(differs(`${field}.devices`, `${made} of ${expectedMembers} members and ${spares} spares, ${wanted}`));
  }
  return findings;
}

/** `what`: `array data (UUID)`. `found` is undefined where nobody can tell what it is. */
export function lintOwnFilesystem(
  what: string,
  field: string,
  wanted: string,
  found: string | undefined,
): readonly Finding[] {
  if (found === undefined || found === wanted) return [];
  return [
    differs(`${field}.filesystem`, `${what} is this node's and holds the ${found} that was made in it, not ${wanted}`),
  ];
}

export function lintOwnUnlock(
  { name, unlock }: LuksSpec,
  field: string,
  uuid: string,
  made: string | undefined,
): readonly Finding[] {
  if (made === undefined || made === unlock) return [];
  const message = `volume ${name} (${uuid}) is this node's and was made to be opened by ${made}, not ${unlock}`;
  return [differs(`${field}.unlock`, message)];
}
