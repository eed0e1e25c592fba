import type { RecordedMachine } from "./recorded.ts";

const TB = 1_000_000_000_000;

/** `sda` … `sdz`, `sdaa` …, as the kernel counts. */
function kernelName(index: number): string {
  const letter = String.fromCharCode(97 + (index % 26));
  return index < 26 ? `sd${letter}` : `${kernelName(Math.floor(index / 26) - 1)}${letter}`;
}

/** A storage box: 300 disks of one model behind two expanders, each third with an old filesystem, some in arrays. */
export function threeHundredDisks(): RecordedMachine {
  const names = Array.from({ length: 300 }, (_, index) => kernelName(index));
  const serialOf = (index: number): string => `ZC1${index.toString().padStart(5, "0")}`;
  const pairOf = (index: number): string =>
    `${Math.floor(index / 10)
      .toString(16)
      .padStart(8, "0")}:00000001:00000002:00000003`;
  const isMember = (index: number): boolean => index % 10 >= 8;
  const isOld = (index: number): boolean => index % 3 === 0 && !isMember(index);
  const each = <T>(filter: (index: number) => boolean, valueOf: (index: number) => T): Readonly<Record<string, T>> =>
    Object.fromEntries(names.flatMap((name, index) => (filter(index) ? [[`/dev/${name}`, valueOf(index)]] : [])));
  return {
    about: "300 disks of one model: nothing may take a time that grows with their square",
    origin: "generated in what the tools would print",
    lsblk: {
      blockdevices: names.map((name, index) => ({
        name,
        kname: name,
        path: `/dev/${name}`,
        type: "disk",
        size: 16 * TB,
        "log-sec": 512,
        "phy-sec": 4096,
        tran: "sas",
        rota: true,
        rm: false,
        ro: false,
        serial: serialOf(index),
        wwn: `0x5000c500${index.toString(16).padStart(8, "0")}`,
        model: "ST16000NM002G",
        mountpoints: [null],
      })),
    },
    wipefs: {
      ...each(isOld, (index) => [
        { device: names[index], offset: "0x0", type: "xfs", uuid: `old-${index}`, label: null },
      ]),
      ...each(isMember, (index) => [
        { device: names[index], offset: "0x1000", type: "linux_raid_member", uuid: pairOf(index), label: "box:old" },
      ]),
    },
    udev: each(
      () => true,
      (index) => [
        `DEVNAME=/dev/${names[index]}`,
        `DEVLINKS=/dev/disk/by-id/wwn-0x5000c500${index.toString(16).padStart(8, "0")} /dev/disk/by-path/pci-0000:3b:00.0-sas-phy${index}-lun-0`,
      ],
    ),
    examineExport: each(isMember, (index) => ({
      lines: ["MD_LEVEL=raid1", "MD_DEVICES=2", "MD_NAME=box:old", `MD_UUID=${pairOf(index)}`],
    })),
  };
}
