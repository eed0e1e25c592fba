/**
 * Where things are on a node. One `--state-dir` roots everything that must survive, one run folder the rest:
 * tests and `--state-dir` move them together.
 */
export interface Paths {
  /** On the corium partition. */
  readonly stateDir: string;
  /** SQLite, WAL, synchronous=FULL. */
  readonly database: string;
  /** The marker: bootstrap is over. */
  readonly marker: string;
  /** The allow-listed part of /etc, copied in before PID 1 starts. */
  readonly keptEtc: string;
  /** The API's own key and certificate, minted once. */
  readonly apiDir: string;
  readonly tmpDir: string;
  readonly runDir: string;
  readonly socket: string;
  /** The claim code of this boot, 0600. */
  readonly enrolment: string;
  /** Written by the initramfs: see BootFacts. */
  readonly bootFacts: string;
  /** A reset was asked for and is not over: what it is to do. Outside the database, which it erases. */
  readonly resetIntent: string;
  /** Beside it, from the moment that there is no way back: k0s is not started any more (its unit looks for this). */
  readonly resetErasing: string;
  /** Source 1. */
  readonly config: string;
  /** Source 4. */
  readonly bakedConfig: string;
}

export function nodePaths(stateDir = "/var/lib/corium", runDir = "/run/corium"): Paths {
  return {
    stateDir,
    database: `${stateDir}/corium.db`,
    marker: `${stateDir}/bootstrapped`,
    keptEtc: `${stateDir}/etc`,
    apiDir: `${stateDir}/api`,
    tmpDir: `${stateDir}/tmp`,
    runDir,
    socket: `${runDir}/api.sock`,
    enrolment: `${runDir}/enrolment.json`,
    bootFacts: `${runDir}/boot.json`,
    resetIntent: `${stateDir}/reset.json`,
    resetErasing: `${stateDir}/reset-erasing`,
    config: "/etc/corium/config.yaml",
    bakedConfig: "/usr/share/corium/config.yaml",
  };
}

/**
 * What the initramfs found out, as JSON in `/run/corium/boot.json`.
 * `live`: root from a medium or the network, nothing kept. `disk`: an installed slot.
 */
export interface BootFacts {
  readonly mode: "live" | "disk";
  readonly slot?: "A" | "B";
  /** Installation id of the disk that GRUB came from. */
  readonly installation?: string;
  /** dm-verity root hash of the running root. */
  readonly rootHash?: string;
  /** Of the installed disk that was booted, lower case; what GRUB and the installer called them. */
  readonly partUuids?: {
    readonly esp: string;
    readonly boot: string;
    readonly root: string;
    readonly state: string;
    readonly data: string;
  };
  /** The system lies on arrays over two disks; `partUuids` are of the one that GRUB read. */
  readonly isMirrored?: boolean;
  /**
   * Live only: where `vmlinuz`, `initrd` and `root.img` lie that an installation copies; `hashOffsetBytes` is the
   * size of the squashfs in root.img, behind which the verity tree starts.
   */
  readonly image?: { readonly directory: string; readonly hashOffsetBytes: number };
  /** Live by PXE: the address of the root. */
  readonly fetchedFrom?: string;
  /** The device of the medium, when there is one, and where it is mounted (read-only). */
  readonly medium?: { readonly device: string; readonly mountPoint: string };
  /** State could not be mounted: the node runs but must say degraded. */
  readonly problems?: readonly string[];
}

/** What of /etc is kept over boots; everything else there is volatile. Folders end in a slash. */
export const KEPT_ETC = [
  "/etc/machine-id",
  "/etc/hostname",
  "/etc/hosts",
  "/etc/corium/",
  "/etc/crypttab",
  "/etc/k0s/",
  "/etc/systemd/network/",
  "/etc/systemd/system/",
  "/etc/mdadm/mdadm.conf.d/",
  "/etc/ssh/",
] as const;

/** Certificates of the site, PEM: trusted beside the system's when a secret is fetched. Kept over boots. */
export const SITE_AUTHORITY = "/etc/corium/site-ca.pem";

export const isKept = (path: string): boolean =>
  KEPT_ETC.some((kept) => (kept.endsWith("/") ? path.startsWith(kept) : path === kept));
