import type { DiskIdentity } from "../kit/disk.ts";
import { bootstrapKeyFile, passphraseFile } from "./argv.ts";
import type {
  LuksCrypttabStep,
  LuksEnrollStep,
  LuksFormatStep,
  LuksKeyStep,
  LuksOpenStep,
  Unlock,
  VolumeDevice,
} from "./model.ts";
import { crypttabLine } from "./render.ts";

/** LUKS 2 holds 47 bytes; names are at most 32. */
export const headerLabel = (name: string): string => `corium-${name}`;

export interface VolumeOrder {
  readonly name: string;
  readonly unlock: Unlock;
  readonly device: VolumeDevice;
  /** `disk /dev/sdb (…)`, `array data`. */
  readonly deviceName: string;
  readonly uuid: string;
  readonly disks: readonly DiskIdentity[];
}

const keyFileOf = ({ name, unlock }: Pick<VolumeOrder, "name" | "unlock">): string =>
  unlock === "tpm2" ? bootstrapKeyFile(name) : passphraseFile(name);

export const keyStep = (order: VolumeOrder, field: string): LuksKeyStep => ({
  kind: "luks:key",
  id: `luks:${order.name}:key`,
  title: `keep the passphrase of volume ${order.name}`,
  name: order.name,
  device: order.device,
  uuid: order.uuid,
  keyFile: keyFileOf(order),
  field,
});

export const formatStep = (order: VolumeOrder): LuksFormatStep => ({
  kind: "luks:format",
  id: `luks:${order.name}:format`,
  title: `encrypt ${order.deviceName} as volume ${order.name}`,
  name: order.name,
  device: order.device,
  uuid: order.uuid,
  label: headerLabel(order.name),
  unlock: order.unlock,
  keyFile: keyFileOf(order),
  destroys: order.disks,
});

export const enrollStep = (order: VolumeOrder): LuksEnrollStep => ({
  kind: "luks:enroll",
  id: `luks:${order.name}:enroll`,
  title: `bind volume ${order.name} to the TPM`,
  name: order.name,
  device: order.device,
  uuid: order.uuid,
  keyFile: keyFileOf(order),
});

export const crypttabStep = (order: VolumeOrder): LuksCrypttabStep => ({
  kind: "luks:crypttab",
  id: `luks:${order.name}:crypttab`,
  title: `record volume ${order.name} for the next boots`,
  line: crypttabLine(order),
});

export const openStep = ({ name, uuid, unlock }: VolumeOrder): LuksOpenStep => ({
  kind: "luks:open",
  id: `luks:${name}:open`,
  title: `open volume ${name}`,
  name,
  uuid,
  unlock,
});
