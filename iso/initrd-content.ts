/**
 * What an initramfs must and must not hold, so that it writes to no disk that nobody decided about: an assembled
 * array is written even while it is auto-read-only, and the hooks of mdadm and lvm bring rules along whatever the
 * image masks.
 */

const FORBIDDEN = [
  /(^|\/)udev\/rules\.d\/.*(md-raid|lvm|bcache|btrfs|nvmf).*\.rules$/,
  /^scripts\/local-(block|bottom|top|premount)\/(mdadm|lvm2|resume)$/,
];

/** `contents`: size in bytes of each file by its path in the initramfs; an empty rule masks one of that name. */
export function initrdComplaints(contents: ReadonlyMap<string, number>, mdadmConf: string): string[] {
  const complaints: string[] = [];
  for (const [path, sizeBytes] of contents) {
    if (sizeBytes > 0 && FORBIDDEN.some((pattern) => pattern.test(path))) complaints.push(`${path} must not be there`);
  }
  if (!/^AUTO -all$/m.test(mdadmConf)) complaints.push("etc/mdadm/mdadm.conf does not say AUTO -all");
  const arrays = mdadmConf.split("\n").filter((line) => line.startsWith("ARRAY "));
  if (arrays.some((line) => !line.startsWith("ARRAY <ignore> "))) {
    complaints.push("etc/mdadm/mdadm.conf names arrays of the machine that built it");
  }
  const paths = [...contents.keys()];
  const wanted = [
    "scripts/corium",
    "etc/corium/kept",
    "/dmsetup",
    "/e2fsck",
    "/blkid",
    "/mdadm",
    "dm-verity.ko",
    "raid1.ko",
    "squashfs.ko",
    "isofs.ko",
  ];
  for (const part of wanted) {
    if (!paths.some((path) => path.includes(part))) complaints.push(`${part} is missing`);
  }
  return complaints;
}
