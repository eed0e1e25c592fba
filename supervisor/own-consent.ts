/**
 * `--wipe-own`: the consent to lose what this node itself made, or an installed Corium. Given once, at the claim or on
 * the console; used once; both are events, and the request that gave it is in the audit.
 */
import { z } from "zod";
import type { Disk, DiskIdentity } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import type { State } from "../state/open.ts";

type Kept = Pick<State, "meta" | "events">;

const schema = z.object({
  atMs: z.number(),
  by: z.string(),
  /** Of the console's installer: for these disks and no others. Absent: for all that the document names with `wipe`. */
  disks: z.array(z.custom<DiskIdentity>((value) => typeof value === "object" && value !== null)).optional(),
});
export type OwnConsent = z.infer<typeof schema>;

export function giveConsent({ meta, events }: Kept, consent: OwnConsent): void {
  meta.set("wipe-own", JSON.stringify(consent));
  const what =
    consent.disks === undefined ? "what this node made, where its document says wipe" : "an installed Corium";
  const message = `${consent.by} agreed that ${what} may be lost, once (--wipe-own)`;
  events.add({ atMs: consent.atMs, kind: "wipe-own-given", severity: "warning", message });
}

/** Unreadable is none. */
export function consentOf({ meta }: Pick<State, "meta">): OwnConsent | undefined {
  const text = meta.get("wipe-own");
  if (text === undefined) return undefined;
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** For the planner of a first boot: since when all that is ours may be lost. */
export function ownLossSinceMs(state: Pick<State, "meta">): number | undefined {
  const consent = consentOf(state);
  return consent === undefined || consent.disks !== undefined ? undefined : consent.atMs;
}

/** For the planner of an installation. */
export function mayGiveUp(state: Pick<State, "meta">): (disk: Disk) => boolean {
  const consent = consentOf(state);
  return (disk) =>
    consent !== undefined &&
    (consent.disks === undefined || consent.disks.some((identity) => sameDisk(identity, disk.identity)));
}

/** It is good for nothing more. */
export function spendConsent({ meta, events }: Kept, atMs: number): void {
  if (meta.get("wipe-own") === undefined) return;
  meta.remove("wipe-own");
  const message = "the consent to lose what this node made (--wipe-own) is used up";
  events.add({ atMs, kind: "wipe-own-spent", severity: "info", message });
}
