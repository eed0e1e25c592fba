import type { DiskIdentity } from "../kit/disk.ts";
import type { StepBase } from "../kit/step.ts";

export type Unlock = "tpm2" | "passphrase";

/** What holds the header: a whole disk, which must be found behind its path, or an array by its stable name. */
export interface VolumeDevice {
  readonly path: string;
  readonly identity?: DiskIdentity;
}

/** The key of a volume on the state partition: what the document gave, checked against a header that is there already. */
export interface LuksKeyStep extends StepBase {
  readonly kind: "luks:key";
  readonly name: string;
  readonly device: VolumeDevice;
  readonly uuid: string;
  readonly keyFile: string;
  /** The secret's field path: `luks[vault].passphraseFrom`. */
  readonly field: string;
}

export interface LuksFormatStep extends StepBase {
  readonly kind: "luks:format";
  readonly name: string;
  readonly device: VolumeDevice;
  /** Of the header, chosen beforehand. */
  readonly uuid: string;
  /** Set as the very last act: a header that has it has its first key. */
  readonly label: string;
  readonly unlock: Unlock;
  readonly keyFile: string;
  readonly destroys: readonly DiskIdentity[];
}

/** Binds the volume to the TPM, then takes the bootstrap key away again. */
export interface LuksEnrollStep extends StepBase {
  readonly kind: "luks:enroll";
  readonly name: string;
  readonly device: VolumeDevice;
  readonly uuid: string;
  readonly keyFile: string;
}

/** Our line of /etc/crypttab. */
export interface LuksCrypttabStep extends StepBase {
  readonly kind: "luks:crypttab";
  readonly line: string;
}

export interface LuksOpenStep extends StepBase {
  readonly kind: "luks:open";
  readonly name: string;
  readonly uuid: string;
  readonly unlock: Unlock;
}

export type LuksStep = LuksKeyStep | LuksFormatStep | LuksEnrollStep | LuksCrypttabStep | LuksOpenStep;

/** What opens a key slot; `password` is any slot that no token stands for. */
export type SlotKind = "password" | "tpm2" | "recovery" | "other";

export interface KeySlot {
  readonly number: number;
  readonly kind: SlotKind;
}

export interface Header {
  readonly slots: readonly KeySlot[];
  /** Of each systemd-tpm2 token. */
  readonly tpm2Pcrs: readonly (readonly number[])[];
}

/** What this machine's TPM is good for; read before anything is planned. */
export interface TpmFacts {
  /** `/sys/class/tpm/tpm0/tpm_version_major`; absent without a TPM. */
  readonly versionMajor?: number;
  readonly isEfi: boolean;
  readonly isSecureBoot: boolean;
  /** `corium.luks-pcr7=acknowledged` on the kernel command line. */
  readonly isAcknowledged: boolean;
}

/** What the declared unlock found behind a header that nobody recorded. */
export interface Probed {
  readonly uuid: string;
  readonly filesystem?: { readonly type: string; readonly uuid?: string; readonly label?: string };
}

/** `NodeAnswer.storage.volumes[]`. */
export interface VolumeReport {
  readonly name: string;
  readonly unlock: Unlock;
  /** `missing`: the device with its header is not here. */
  readonly state: "open" | "locked" | "missing";
  /** Left out when the header could not be read. */
  readonly hasRecoveryKey?: boolean;
}

export interface KnownVolume {
  readonly name: string;
  readonly uuid: string;
  readonly unlock: Unlock;
}
