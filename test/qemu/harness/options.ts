/** What a virtual machine of the tests is made of. */
export interface DiskOptions {
  /** Shown by the guest as the disk's serial; names the disk in the harness. At most 20 characters. */
  readonly serial: string;
  /** An existing image; without it a raw one of `sizeMiB` is made and dropped with the machine. */
  readonly path?: string;
  readonly sizeMiB?: number;
  /** Of `path`; default raw. */
  readonly format?: "raw" | "qcow2";
  readonly bus?: "virtio" | "nvme" | "scsi";
  readonly sectorBytes?: 512 | 4096;
  /** Behind a root port of its own (virtio, nvme), so that `vm.pull` works; SCSI disks can be pulled always. */
  readonly isPullable?: boolean;
  readonly bootIndex?: number;
  readonly isReadOnly?: boolean;
  /** Every write and flush also goes to this dm-log-writes log, for power-cut replays. */
  readonly writeLog?: string;
}

/**
 * Disks of one machine cut out of one image, with one log over all of them: logs of their own would share no order. A
 * flush of one disk then counts for all of them: the log does not say whose it was.
 */
export interface SharedLog {
  /** At least as large as all disks together. */
  readonly path: string;
  /** Default raw. */
  readonly format?: "raw" | "qcow2";
  /** The dm-log-writes log. */
  readonly log: string;
}

export interface MediumOptions {
  readonly path: string;
  /** Default `cd`. */
  readonly as?: "cd" | "usb";
  readonly bootIndex?: number;
}

export interface VmOptions {
  /** Names the logs under out/vm-logs. */
  readonly name: string;
  /** Default bios. */
  readonly firmware?: "bios" | "ovmf";
  /** Kept between starts of one machine (boot entries of OVMF); made when absent. */
  readonly firmwareVars?: string;
  readonly memoryMiB?: number;
  /** Default 1: two emulated machines with two processors each wait for one another on a host that has two. */
  readonly cpus?: number;
  /** The kernel directly, without firmware's boot. */
  readonly kernel?: { readonly path: string; readonly initrd?: string; readonly append: string };
  /** ISO images, and raw images as USB sticks. */
  readonly media?: readonly MediumOptions[];
  readonly disks?: readonly DiskOptions[];
  /** Every disk is a part of this image, `sizeMiB` long, in order. */
  readonly sharedLog?: SharedLog;
  /**
   * Network boot by the card's iPXE. `file` is what DHCP names: a file in `directory` (served by TFTP) or an
   * http URL (10.0.2.2 is this host).
   */
  readonly pxe?: { readonly directory?: string; readonly file: string };
  /** Guest TCP ports to reach at 127.0.0.1: `vm.port(7443)`. */
  readonly forwards?: readonly number[];
  /** Guest port → port here, for a machine that is started again: clients know it by its address. Else a free one. */
  readonly hostPorts?: Readonly<Record<number, number>>;
  /** Refuse the guest everything but this host (10.0.2.2) and forwarded ports. Default false. */
  readonly isIsolated?: boolean;
  /** A second card on a private segment shared by all machines that give the same port. */
  readonly lan?: { readonly port: number; readonly mac: string };
  /** A graphics card, which an emulator draws every line of the console for. Default: none, as many a server has none. */
  readonly hasScreen?: boolean;
  /** MAC of the first card; clones of a disk need their own. Default 52:54:00:12:34:56. */
  readonly mac?: string;
  /** A second serial port, for the root shell of shell.ts. Default true. */
  readonly shell?: boolean;
  /** A reboot of the guest ends the machine: `vm.waitExit` then says so. */
  readonly isRebootExit?: boolean;
  /** Start of the real-time clock, UTC: `2019-03-01T00:00:00`. Default now. */
  readonly clock?: string;
  /** pcap of the first card. */
  readonly capture?: string;
  /** Further SMBIOS OEM strings: systemd credentials. */
  readonly oemStrings?: readonly string[];
  /** A TPM 2 whose state is in this folder, made when absent: another folder is another TPM. */
  readonly tpm?: string;
  readonly extraArgs?: readonly string[];
}
