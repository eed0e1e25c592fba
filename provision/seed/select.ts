/** Pure: which devices may carry a seed, and which file of one is it. */
import { contentNodes } from "../../disks/inventory.ts";
import type { BlockNode } from "../../disks/model.ts";

export type SeedLabel = "CORIUM" | "CIDATA";

export interface SeedDevice {
  readonly path: string;
  /** As udev saw them; the probe of the device itself is preferred. */
  readonly label?: string;
  readonly filesystem?: string;
  /** Beside the live system, on a disk that the kernel lets nobody else claim. */
  readonly isOnBootMedium: boolean;
}

export interface SeedDevices {
  readonly candidates: readonly SeedDevice[];
  /** Labelled as seeds, but on disks that stay in the machine: never read. */
  readonly fixed: readonly { readonly path: string; readonly label: SeedLabel }[];
  /** Differs as soon as a medium was changed. */
  readonly fingerprint: string;
}

/** Labels on FAT are upper case; cloud-init takes both, and so do we. */
export function seedLabel(label: string | undefined): SeedLabel | undefined {
  const upper = label?.toUpperCase();
  return upper === "CORIUM" || upper === "CIDATA" ? upper : undefined;
}

/** `medium`: the paths of the device that the live system runs from; what is at its top is read where it is mounted. */
export function seedDevices(tree: readonly BlockNode[], medium: readonly string[]): SeedDevices {
  const candidates: SeedDevice[] = [];
  const fixed: { path: string; label: SeedLabel }[] = [];
  const seen: unknown[] = [];
  for (const top of tree.filter(({ type }) => type === "disk" || type === "rom")) {
    const nodes = contentNodes(top);
    const isOnBootMedium = nodes.some(({ path }) => medium.includes(path));
    for (const node of nodes) {
      const label = seedLabel(node.label);
      if (!isOnBootMedium && !isRemovable(top)) {
        if (label !== undefined) fixed.push({ path: node.path, label });
        continue;
      }
      if (medium.includes(node.path) || node.sizeBytes === 0) continue;
      candidates.push({
        path: node.path,
        isOnBootMedium,
        ...(node.label === undefined ? {} : { label: node.label }),
        ...(node.filesystem === undefined ? {} : { filesystem: node.filesystem }),
      });
      seen.push([node.path, node.sizeBytes, node.label, top.sequence]);
    }
  }
  return { candidates, fixed, fingerprint: JSON.stringify(seen) };
}

/** Optical drives, sticks, cards. A virtual disk of a hypervisor (virtio, SCSI) is none of these. */
const isRemovable = (top: BlockNode): boolean =>
  top.type === "rom" || top.isRemovable || top.isHotplug || top.transport === "usb";

export interface ListedFile {
  /** As `find -printf %y` says it: `f` is a plain file. */
  readonly type: string;
  readonly sizeBytes: number;
  readonly name: string;
}

export const LISTING_FORMAT = "%y %s %f\\0";

/** What `find -printf` with LISTING_FORMAT printed. */
export const parseListing = (stdout: string): readonly ListedFile[] =>
  stdout.split("\0").flatMap((entry) => {
    const [, type = "", size, name = ""] = /^(\S) (\d+) (.+)$/s.exec(entry) ?? [];
    return name === "" ? [] : [{ type, sizeBytes: Number(size), name }];
  });

/** ISO 9660 without Rock Ridge or Joliet knows neither lower case nor the hyphen, FAT keeps what case it was given. */
const NAMES: Readonly<Record<SeedLabel, RegExp>> = { CORIUM: /^config\.yaml$/i, CIDATA: /^user[-_]data$/i };

export const SEED_FILES: Readonly<Record<SeedLabel, string>> = { CORIUM: "config.yaml", CIDATA: "user-data" };

export const chooseFile = (label: SeedLabel, files: readonly ListedFile[]): ListedFile | undefined =>
  files.find(({ name }) => name === SEED_FILES[label]) ?? files.find(({ name }) => NAMES[label].test(name));
