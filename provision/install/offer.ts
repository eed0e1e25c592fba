/** Which disks a live system could install itself to, and why not the others: what a person chooses from. Pure. */
import type { DeviceRef } from "../../config/document.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import { describeContent, describeDisk, holdsData } from "../../disks/describe.ts";
import { resolveDevice } from "../../disks/select.ts";
import type { InstallInput } from "./plan.ts";
import { planInstall } from "./plan.ts";
import { standingOf } from "./standing.ts";

/** What has to be agreed to: nothing, the loss of data, the loss of an installed Corium. */
export type Consent = "none" | "wipe" | "wipe-own";

export interface DiskOffer {
  /** Of this boot only. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly model?: string;
  readonly serial?: string;
  readonly wwn?: string;
  /** How a document names it; absent when nothing tells it from another one. */
  readonly ref?: DeviceRef;
  readonly isAccepted: boolean;
  readonly consent: Consent;
  /** What is on it, in words; empty when it is blank. */
  readonly content: string;
  /** Why it is not accepted; empty when it is. */
  readonly reason: string;
}

export interface InstallOffers {
  readonly disks: readonly DiskOffer[];
  /** Whether there are two disks for it. */
  readonly canMirror: boolean;
}

export type OfferInput = Pick<
  InstallInput,
  "inventory" | "image" | "version" | "args" | "intents" | "marks" | "firmware"
>;

/** The very plan of an installation decides, asked for each disk with every consent given. */
export function offerDisks(input: OfferInput): InstallOffers {
  const { inventory } = input;
  const disks = inventory.disks.map((disk) => offerDisk(disk, input));
  const canMirror = disks.filter(({ ref, isAccepted }) => isAccepted && ref !== undefined).length > 1;
  return { disks, canMirror };
}

function offerDisk(disk: Disk, input: OfferInput): DiskOffer {
  const { model, serial, wwn } = disk.identity;
  const ref = refTo(disk, input.inventory);
  const said = ref === undefined ? [whyNameless(disk, input.inventory)] : errorsOf({ disk: ref }, input);
  // It is named above.
  const reasons = said.map((reason) => reason.replace(`${describeDisk(disk)}: `, ""));
  return {
    path: disk.path,
    sizeBytes: disk.sizeBytes,
    ...(model === undefined ? {} : { model }),
    ...(serial === undefined ? {} : { serial }),
    ...(wwn === undefined ? {} : { wwn }),
    ...(ref === undefined ? {} : { ref }),
    isAccepted: reasons.length === 0,
    consent: consentFor(disk),
    content: describeContent(disk),
    reason: reasons.join("; "),
  };
}

/** By its serial or wwn, else by where it is plugged in; never by its kernel name. */
function refTo(disk: Disk, inventory: Inventory): DeviceRef | undefined {
  const { serial, wwn } = disk.identity;
  const refs: readonly DeviceRef[] = [
    ...(serial === undefined ? [] : [{ serial }]),
    ...(wwn === undefined ? [] : [{ wwn }]),
    ...disk.links.filter((link) => link.startsWith("/dev/disk/by-path/")),
  ];
  return refs.find((ref) => {
    const found = resolveDevice(ref, inventory);
    return found.ok && found.value === disk;
  });
}

function whyNameless(disk: Disk, inventory: Inventory): string {
  const found = resolveDevice(disk.path, inventory);
  if (found.ok) return "it has no serial, no wwn and no place by which a document could name it";
  const line = found.error.details?.find((each) => each.startsWith(`${disk.path} `)) ?? found.error.message;
  return line.slice(line.lastIndexOf("bytes: ") + (line.includes("bytes: ") ? "bytes: ".length : 1));
}

function errorsOf(install: { readonly disk: DeviceRef }, input: OfferInput): string[] {
  return planOf(install, input)
    .findings.filter(({ severity }) => severity === "error")
    .map(({ message }) => message);
}

const planOf = (install: { readonly disk: DeviceRef }, input: OfferInput) =>
  planInstall({
    ...input,
    document: { install: { ...install, wipe: true } },
    documentSha256: "",
    uuid: () => "00000000-0000-4000-8000-000000000000",
    mayGiveUp: () => true,
  });

export function consentFor(disk: Disk): Consent {
  const standing = standingOf(disk);
  if (standing === "installed") return "wipe-own";
  return standing === "other" && (holdsData(disk) || disk.users.length > 0) ? "wipe" : "none";
}
