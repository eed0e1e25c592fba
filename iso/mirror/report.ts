/** The arrays of a mirrored system as one line for people: it is whole only when each of them is. Pure. */
import type { ArrayReport, WantedArray } from "../../raid/report.ts";
import { arrayNameOf, arrayUuidOf, MIRRORED_ROLES } from "../uuids.ts";
import { MIRROR_WIDTH } from "./model.ts";

/** The name under which status, console and `cctl` show them. */
export const SYSTEM_ARRAY = "system";

export const systemArrays = (installation: string): readonly WantedArray[] =>
  MIRRORED_ROLES.map((role) => ({
    name: arrayNameOf(role),
    uuid: arrayUuidOf(installation, role),
    level: "raid1",
    memberCount: MIRROR_WIDTH,
  }));

/** Worst first. */
const RANK = [
  "failed",
  "missing",
  "inactive",
  "degraded",
  "rebuilding",
  "resyncing",
  "reshaping",
  "checking",
  "healthy",
];
const rankOf = ({ state }: ArrayReport): number => RANK.indexOf(state);

/** The worst of them stands for all, with the least members. */
export function joinSystem(reports: readonly ArrayReport[]): ArrayReport | undefined {
  const [worst] = reports.toSorted((a, b) => rankOf(a) - rankOf(b));
  if (worst === undefined) return undefined;
  return { ...worst, name: SYSTEM_ARRAY, active: Math.min(...reports.map(({ active }) => active)) };
}
