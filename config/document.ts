/**
 * The document after parsing, validating and defaulting: what every other part of the program reads.
 * Lists default to [], blocks whose absence means something stay optional. Field rules: docs/reference.
 */
export type Role = "single" | "controller" | "controller+worker" | "worker";
export type Cni = "kuberouter" | "calico" | "custom";
export type Filesystem = "ext4" | "xfs" | "none";
export type RaidLevel = 0 | 1 | 5 | 6 | 10;

/** A path under /dev (a string), or what must match exactly one disk. Sizes keep their unit: `500GB`. */
export type DeviceRef = string | DeviceSelector;

export interface DeviceSelector {
  readonly serial?: string;
  readonly wwn?: string;
  /** A glob. */
  readonly model?: string;
  readonly type?: "nvme" | "ssd" | "hdd";
  readonly bus?: "nvme" | "sata" | "sas" | "usb" | "virtio" | "mmc";
  readonly minSize?: string;
  readonly maxSize?: string;
}

/** Where a secret comes from; exactly one of url and file. */
export interface SecretSource {
  readonly url?: string;
  readonly file?: string;
  readonly authFile?: string;
  /** `90s`, `15m`, `1m30s`; at most 1 h. */
  readonly waitFor?: string;
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

export interface Addon {
  readonly name: string;
  readonly chart: string;
  readonly version?: string;
  readonly namespace: string;
  readonly repository?: { readonly name: string; readonly url: string };
  readonly values?: Readonly<Record<string, unknown>>;
}

export interface ManifestStack {
  readonly name: string;
  readonly files: readonly { readonly name: string; readonly content: string }[];
}

export interface DiskSpec {
  readonly name: string;
  readonly device: DeviceRef;
  readonly filesystem: Filesystem;
  readonly mountPoint?: string;
  readonly wipe: boolean;
}

export interface RaidSpec {
  readonly name: string;
  readonly level: RaidLevel;
  readonly devices: readonly DeviceRef[];
  readonly spares: readonly DeviceRef[];
  readonly filesystem: Filesystem;
  readonly mountPoint?: string;
  readonly wipe: boolean;
}

export interface LuksSpec {
  readonly name: string;
  readonly device: DeviceRef;
  readonly unlock: "tpm2" | "passphrase";
  readonly passphrase?: string;
  readonly passphraseFrom?: SecretSource;
  readonly filesystem: Filesystem;
  readonly mountPoint?: string;
  readonly wipe: boolean;
}

export interface ZfsSpec {
  readonly name: string;
  readonly vdevs: readonly {
    readonly type: "stripe" | "mirror" | "raidz" | "raidz2" | "raidz3";
    readonly devices: readonly DeviceRef[];
  }[];
  readonly mountPoint?: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly filesystemOptions: Readonly<Record<string, unknown>>;
  readonly datasets: readonly Readonly<Record<string, unknown>>[];
  readonly wipe: boolean;
}

export interface WireguardPeer {
  readonly publicKey: string;
  readonly endpoint?: string;
  readonly allowedIPs: readonly string[];
  /** Seconds. */
  readonly persistentKeepalive?: number;
  readonly presharedKey?: string;
  readonly presharedKeyFrom?: SecretSource;
}

export interface WireguardSpec {
  readonly name: string;
  /** CIDRs, in the order given. */
  readonly address: readonly string[];
  readonly listenPort?: number;
  readonly mtu?: number;
  readonly nodeAddress: boolean;
  readonly privateKey?: string;
  readonly privateKeyFrom?: SecretSource;
  readonly generateKey: boolean;
  readonly peers: readonly WireguardPeer[];
}

export interface Document {
  readonly role?: Role;
  readonly cluster: {
    readonly name: string;
    readonly endpoint?: string;
    readonly subjectAltNames: readonly string[];
  };
  readonly network: {
    readonly podCIDR: string;
    readonly serviceCIDR: string;
    readonly cni: Cni;
    readonly handover?: {
      readonly mode: "automatic" | "manual" | "disabled";
      readonly stack?: string;
      readonly application?: { readonly name: string; readonly namespace: string };
    };
  };
  readonly storage: { readonly type: "etcd" | "sqlite" };
  readonly join?: { readonly token?: string; readonly tokenFrom?: SecretSource };
  readonly node: {
    readonly name?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly taints: readonly Taint[];
  };
  readonly addons: readonly Addon[];
  readonly manifests: readonly ManifestStack[];
  readonly ha: {
    readonly enabled: boolean;
    readonly virtualIP?: string;
    readonly interface?: string;
    readonly virtualRouterID?: number;
    readonly unicastPeers: readonly string[];
    readonly authPass?: string;
    readonly authPassFrom?: SecretSource;
  };
  readonly upgrades: {
    readonly automatic: "none" | "download" | "apply";
    readonly schedule: string;
    readonly source?: { readonly url: string };
  };
  readonly backup?: {
    readonly enabled: boolean;
    readonly schedule: string;
    readonly path: string;
    readonly keep: number;
  };
  readonly raid: readonly RaidSpec[];
  readonly luks: readonly LuksSpec[];
  readonly disks: readonly DiskSpec[];
  readonly zfs: readonly ZfsSpec[];
  readonly wireguard: readonly WireguardSpec[];
  /** Absent: claimable until bootstrapped, bootstrap not held. */
  readonly api?: {
    readonly enabled: boolean;
    readonly operatorCA?: string;
    readonly operatorCAFrom?: SecretSource;
    readonly insecure: boolean;
    readonly awaitConfig: boolean;
  };
  readonly k0s: { readonly patch: Readonly<Record<string, unknown>> };
  readonly kubernetes: { readonly version?: string };
  readonly install?: { readonly disk: DeviceRef; readonly mirror?: DeviceRef; readonly wipe: boolean };
}
