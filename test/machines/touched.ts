/** Steps → the disks that they have to do with: whatever device a program is given is followed down to its disks. */
import type { Disk, DiskIdentity, Inventory } from "../../kit/disk.ts";
import type { StepBase } from "../../kit/step.ts";

export interface Touched {
  readonly step: StepBase;
  /** Paths of disks. */
  readonly disks: ReadonlySet<string>;
  /** Those that the step itself says are lost. */
  readonly destroys: ReadonlySet<string>;
  /** Devices that lead nowhere, identities that no disk has: what a step must never have. */
  readonly strays: readonly string[];
}

/** What steps are made of, as far as it names devices. */
interface Named {
  readonly uuid?: string;
  readonly name?: string;
  readonly device?: { readonly path: string; readonly identity?: DiskIdentity };
  readonly members?: readonly { readonly path: string; readonly identity: DiskIdentity }[];
  readonly spares?: readonly { readonly path: string; readonly identity: DiskIdentity }[];
  readonly layout?: { readonly partitions: readonly { readonly partUuid: string }[] };
  /** Arrays over partitions, by PARTUUID. */
  readonly arrays?: readonly { readonly name: string; readonly uuid: string; readonly members: readonly string[] }[];
  readonly disks?: readonly { readonly device: { readonly path: string; readonly identity?: DiskIdentity } }[];
}

const bare = (uuid: string): string => uuid.toLowerCase().replace(/[^0-9a-f]/g, "");
const isDevice = (text: string): boolean => text.startsWith("/dev/") && !/^\/dev\/(null|zero)$/.test(text);

/** Every device that a step names in any of its fields; whom it destroys is compared with these, so it is left out. */
function devicesIn(value: unknown, key = ""): readonly string[] {
  if (key === "destroys" || key === "identity" || key === "title") return [];
  if (typeof value === "string") return isDevice(value) ? [value] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => devicesIn(each, name));
}

export function touchedBy(
  steps: readonly StepBase[],
  argvOf: (step: StepBase) => readonly (readonly string[])[],
  inventory: Inventory,
): readonly Touched[] {
  const named = (step: StepBase): Named => step as Named;
  const diskAt = (path: string): Disk | undefined =>
    inventory.disks.find(
      (disk) => disk.path === path || disk.links.includes(path) || disk.partitions.some((part) => part.path === path),
    );

  /** Every disk below a device; undefined when nothing is known of it. */
  function below(path: string, depth = 0): readonly string[] | undefined {
    if (depth > 8) return undefined;
    const disk = diskAt(path);
    if (disk !== undefined) return [disk.path];
    const via = (devices: readonly (string | undefined)[]): readonly string[] | undefined => {
      const found = devices.map((each) => (each === undefined ? undefined : below(each, depth + 1)));
      return found.length === 0 || found.includes(undefined) ? undefined : found.flatMap((each) => each ?? []);
    };
    const array = /^\/dev\/disk\/by-id\/md-uuid-(.*)$/.exec(path)?.[1];
    const name = /^\/dev\/md\/([^/]+)$/.exec(path)?.[1];
    const volume = /^\/dev\/mapper\/corium-luks-([^/]+)$/.exec(path)?.[1];
    const partition = /^\/dev\/disk\/by-partuuid\/(.*)$/.exec(path)?.[1];
    for (const step of steps.map(named)) {
      const devices = [...(step.members ?? []), ...(step.spares ?? [])].map((each) => each.path);
      if (array !== undefined && step.uuid !== undefined && bare(step.uuid) === bare(array) && devices.length > 0)
        return via(devices);
      if (name !== undefined && step.name === name && devices.length > 0) return via(devices);
      if (volume !== undefined && step.name === volume && step.device !== undefined) return via([step.device.path]);
      if (partition !== undefined && step.layout?.partitions.some((each) => each.partUuid === partition) === true)
        return via([step.device?.path]);
      const made = step.arrays?.find((each) => each.name === name || bare(each.uuid) === bare(array ?? "-"));
      if (made !== undefined) return via(made.members.map((member) => `/dev/disk/by-partuuid/${member}`));
    }
    const found = inventory.arrays.find((each) => array !== undefined && bare(each.uuid) === bare(array));
    return found === undefined ? undefined : via(found.memberPaths);
  }

  const behind = (identity: DiskIdentity): string | undefined =>
    inventory.disks.find((disk) => JSON.stringify(disk.identity) === JSON.stringify(identity))?.path;

  return steps.map((step) => {
    const { device, members = [], spares = [], disks: several = [] } = named(step);
    const strays: string[] = [];
    const disks = new Set<string>();
    const destroys = new Set<string>();
    const tokens = argvOf(step).flatMap((argv) => argv.map((token) => token.replace(/^(of|if)=/, "")));
    const devices = [device, ...members, ...spares, ...several.map((each) => each.device)].filter(
      (each) => each !== undefined,
    );
    for (const path of new Set([...tokens.filter(isDevice), ...devicesIn(step)])) {
      const found = below(path);
      if (found === undefined) strays.push(`${step.id} works on ${path}, which leads to no disk`);
      for (const disk of found ?? []) disks.add(disk);
    }
    for (const each of devices) {
      if (each.identity !== undefined && behind(each.identity) !== diskAt(each.path)?.path)
        strays.push(`${step.id} expects ${JSON.stringify(each.identity)} at ${each.path}, where another disk is`);
    }
    for (const identity of step.destroys ?? []) {
      const path = behind(identity);
      if (path === undefined) strays.push(`${step.id} destroys ${JSON.stringify(identity)}, which no disk is`);
      else destroys.add(path);
    }
    return { step, disks, destroys, strays };
  });
}
