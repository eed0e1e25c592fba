/** Pure: the QEMU command line of a machine. */
import type { DiskOptions, SharedLog, VmOptions } from "./options.ts";

export interface Wiring {
  readonly accel: "tcg" | "kvm";
  /** Holds the sockets. */
  readonly directory: string;
  /** Console log of ttyS0. */
  readonly consoleLog: string;
  readonly firmwareCode?: string;
  readonly firmwareVars?: string;
  readonly tpmSocket?: string;
  /** Image path of each disk, in order. */
  readonly diskPaths: readonly string[];
  /** Guest port → port on this host. */
  readonly ports: ReadonlyMap<number, number>;
}

/** Of the private segments; each has a port of its own. */
export const GROUP = "230.7.7.7";

/** A comma ends an option's value unless doubled. */
const quote = (value: string): string => value.replaceAll(",", ",,");

export const diskDeviceId = (index: number): string => `disk${index}`;

/** `device_add` takes the same properties when a pulled disk comes back. */
export function diskDevice(disk: DiskOptions, index: number): Readonly<Record<string, string | number | boolean>> {
  const id = diskDeviceId(index);
  const sector = disk.sectorBytes ?? 512;
  const common = {
    id,
    drive: disk.writeLog === undefined ? `img${index}` : `log${index}`,
    serial: disk.serial,
    logical_block_size: sector,
    physical_block_size: sector,
    ...(disk.bootIndex === undefined ? {} : { bootindex: disk.bootIndex }),
  };
  const port = disk.isPullable === true ? { bus: `port${index}` } : {};
  switch (disk.bus ?? "virtio") {
    case "virtio":
      return { driver: "virtio-blk-pci", ...common, ...port };
    case "nvme":
      return { driver: "nvme", ...common, ...port };
    case "scsi":
      return { driver: "scsi-hd", ...common, bus: "scsi0.0" };
  }
}

const deviceArgument = (properties: Readonly<Record<string, string | number | boolean>>): string => {
  const { driver, ...others } = properties;
  const rest = Object.entries(others).map(
    ([key, value]) => `${key}=${typeof value === "boolean" ? (value ? "on" : "off") : quote(String(value))}`,
  );
  return [String(driver), ...rest].join(",");
};

/** All disks' one image, and the node that logs what is written to it. */
function sharedLogArguments(shared: SharedLog): string[] {
  return [
    `driver=file,filename=${quote(shared.path)},node-name=sharedfile,discard=unmap`,
    `driver=${shared.format ?? "raw"},file=sharedfile,node-name=sharedimg,discard=unmap`,
    `driver=file,filename=${quote(shared.log)},node-name=sharedlogfile`,
    "driver=blklogwrites,node-name=shared,file=sharedimg,log=sharedlogfile,log-sector-size=512,discard=unmap",
  ].flatMap((node) => ["-blockdev", node]);
}

function slicedDisks(disks: readonly DiskOptions[]): string[] {
  let offsetMiB = 0;
  return disks.flatMap((disk, index) => {
    const [offset, size] = [offsetMiB, disk.sizeMiB ?? 0].map((mib) => mib * 1024 * 1024);
    offsetMiB += disk.sizeMiB ?? 0;
    return [
      "-blockdev",
      `driver=raw,node-name=img${index},file=shared,offset=${offset},size=${size},discard=unmap`,
      "-device",
      // Without share-rw QEMU refuses the second disk: all of them write to one node.
      deviceArgument({ ...diskDevice(disk, index), "share-rw": true }),
    ];
  });
}

function diskArguments(disk: DiskOptions, index: number, path: string): string[] {
  const argv: string[] = [];
  const isPci = (disk.bus ?? "virtio") !== "scsi";
  if (disk.isPullable === true && isPci)
    argv.push("-device", `pcie-root-port,id=port${index},chassis=${index + 1},slot=${index + 1}`);
  // -blockdev, not -drive: the node outlives device_del, so the same disk can come back.
  const readOnly = disk.isReadOnly === true ? ",read-only=on" : "";
  const format = disk.format ?? "raw";
  argv.push("-blockdev", `driver=file,filename=${quote(path)},node-name=file${index},discard=unmap${readOnly}`);
  argv.push("-blockdev", `driver=${format},file=file${index},node-name=img${index},discard=unmap${readOnly}`);
  if (disk.writeLog !== undefined) {
    argv.push("-blockdev", `driver=file,filename=${quote(disk.writeLog)},node-name=logfile${index}`);
    // Without discard=unmap here discards do not reach the log.
    argv.push(
      "-blockdev",
      `driver=blklogwrites,node-name=log${index},file=img${index},log=logfile${index},log-sector-size=512,discard=unmap`,
    );
  }
  argv.push("-device", deviceArgument(diskDevice(disk, index)));
  return argv;
}

function networkArguments(options: VmOptions, wiring: Wiring): string[] {
  const user = ["user", "id=net0"];
  for (const [guest, host] of wiring.ports) user.push(`hostfwd=tcp:127.0.0.1:${host}-:${guest}`);
  if (options.isIsolated === true) user.push("restrict=on");
  if (options.pxe !== undefined) {
    if (options.pxe.directory !== undefined) user.push(`tftp=${quote(options.pxe.directory)}`);
    user.push(`bootfile=${quote(options.pxe.file)}`);
  }
  const card = ["virtio-net-pci", "netdev=net0", "id=nic0", `mac=${options.mac ?? "52:54:00:12:34:56"}`];
  // Without a boot index OVMF tries the network before an empty disk's time-out is over.
  if (options.pxe === undefined) card.push("romfile=");
  else card.push("bootindex=9");
  const argv = ["-netdev", user.join(","), "-device", card.join(",")];
  if (options.capture !== undefined)
    argv.push("-object", `filter-dump,id=dump0,netdev=net0,file=${quote(options.capture)}`);
  if (options.lan !== undefined)
    argv.push(
      "-netdev",
      `socket,id=lan,mcast=${GROUP}:${options.lan.port},localaddr=127.0.0.1`,
      "-device",
      `virtio-net-pci,netdev=lan,id=nic1,romfile=,mac=${options.lan.mac}`,
    );
  return argv;
}

export function qemuArgv(options: VmOptions, wiring: Wiring): string[] {
  const at = (file: string): string => quote(`${wiring.directory}/${file}`);
  const argv = ["qemu-system-x86_64", "-name", quote(options.name), "-machine", "q35"];
  // Nehalem: what Bun needs (SSE 4.2), and the fastest model under TCG. Model 28 is an Atom that speculates nothing: the
  // kernel (arch/x86/kernel/cpu/common.c, NO_SPECULATION) then leaves out page-table isolation and retpolines, which take
  // an emulator a fifth of each boot and hold nothing off in it.
  argv.push("-accel", wiring.accel === "tcg" ? "tcg,thread=multi" : "kvm");
  argv.push("-cpu", wiring.accel === "tcg" ? "Nehalem,model=28" : "host");
  argv.push("-smp", String(options.cpus ?? 1), "-m", String(options.memoryMiB ?? 1024));
  argv.push(
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-vga",
    options.hasScreen === true ? "std" : "none",
    "-S",
  );
  argv.push("-device", "virtio-rng-pci", "-rtc", `base=${options.clock ?? "utc"},clock=host`);
  argv.push("-qmp", `unix:${at("qmp")},server=on,wait=off`);
  argv.push("-chardev", `socket,id=tty0,path=${at("tty0")},server=on,wait=off,logfile=${quote(wiring.consoleLog)}`);
  argv.push("-serial", "chardev:tty0");
  if (options.shell !== false)
    argv.push("-chardev", `socket,id=tty1,path=${at("tty1")},server=on,wait=off`, "-serial", "chardev:tty1");
  if (options.isRebootExit === true) argv.push("-no-reboot");
  if (wiring.firmwareCode !== undefined && wiring.firmwareVars !== undefined)
    argv.push(
      "-drive",
      `if=pflash,unit=0,format=raw,readonly=on,file=${quote(wiring.firmwareCode)}`,
      "-drive",
      `if=pflash,unit=1,format=raw,file=${quote(wiring.firmwareVars)}`,
    );
  if (options.kernel !== undefined) {
    argv.push("-kernel", options.kernel.path, "-append", options.kernel.append);
    if (options.kernel.initrd !== undefined) argv.push("-initrd", options.kernel.initrd);
  }
  // A kernel given directly is what boots, and takes the first index for itself.
  const disks = (options.disks ?? []).map(({ bootIndex, ...disk }) =>
    options.kernel !== undefined || bootIndex === undefined ? disk : { ...disk, bootIndex },
  );
  if (disks.some((disk) => disk.bus === "scsi")) argv.push("-device", "virtio-scsi-pci,id=scsi0");
  if (options.sharedLog === undefined)
    disks.forEach((disk, index) => {
      argv.push(...diskArguments(disk, index, wiring.diskPaths[index] ?? ""));
    });
  else argv.push(...sharedLogArguments(options.sharedLog), ...slicedDisks(disks));
  const media = options.media ?? [];
  if (media.some((medium) => medium.as === "usb")) argv.push("-device", "qemu-xhci,id=usb0");
  media.forEach((medium, index) => {
    const boot = medium.bootIndex === undefined ? "" : `,bootindex=${medium.bootIndex}`;
    const drive = `if=none,id=medium${index},format=raw,readonly=on,file=${quote(medium.path)}`;
    if (medium.as === "usb")
      argv.push("-drive", drive, "-device", `usb-storage,bus=usb0.0,removable=on,drive=medium${index}${boot}`);
    else argv.push("-drive", `${drive},media=cdrom`, "-device", `ide-cd,bus=ide.${index},drive=medium${index}${boot}`);
  });
  if (wiring.tpmSocket !== undefined)
    argv.push(
      "-chardev",
      `socket,id=tpm0,path=${quote(wiring.tpmSocket)}`,
      "-tpmdev",
      "emulator,id=tpm0,chardev=tpm0",
      "-device",
      "tpm-tis,tpmdev=tpm0",
    );
  argv.push(...networkArguments(options, wiring));
  for (const text of options.oemStrings ?? []) argv.push("-smbios", `type=11,value=${quote(text)}`);
  argv.push(...(options.extraArgs ?? []));
  return argv;
}
