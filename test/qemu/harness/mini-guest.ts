/**
 * A kernel and a busybox of Debian, to prove the harness without the image: boots in seconds, prints `mini guest
 * ready` on ttyS0 and has the root shell on ttyS1.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { join } from "node:path";
import { cpio, type CpioEntry } from "./cpio.ts";

export interface MiniGuest {
  readonly path: string;
  readonly initrd: string;
  readonly append: string;
}

const CACHE = join(import.meta.dir, "../../../out/cache/mini-guest");

/** Absent ones are built into the kernel. */
const MODULES = [
  ..."virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk".split(" "),
  ..."scsi_common scsi_mod virtio_scsi crc64 crc-t10dif crc64-rocksoft t10-pi sd_mod".split(" "),
  ..."nvme-common nvme-core nvme failover net_failover virtio_net".split(" "),
];

const INIT = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs run /run
# Twice, so that the order need not be right.
for m in $(cat /modules/order /modules/order); do insmod /modules/$m.ko 2>/dev/null; done
ip link set lo up; ip link set eth0 up 2>/dev/null && ip addr add 10.0.2.15/24 dev eth0 && ip route add default via 10.0.2.2
setsid sh -c 'stty raw -echo </dev/ttyS1; while IFS= read -r line; do eval "$line"; done </dev/ttyS1 >/dev/ttyS1 2>/dev/null' &
echo "mini guest ready"
exec setsid sh -c 'exec </dev/ttyS0 >/dev/ttyS0 2>&1; while read -r line; do echo "you said $line"; done; sleep 99999'
`;

export async function miniGuest(): Promise<MiniGuest> {
  const guest = {
    path: join(CACHE, "vmlinuz"),
    initrd: join(CACHE, "initrd"),
    append: "console=ttyS0 panic=-1 quiet",
  };
  if (!existsSync(guest.initrd)) await build(guest);
  return guest;
}

async function run(argv: readonly string[], cwd: string): Promise<string> {
  const child = Bun.spawn([...argv], { cwd, stdout: "pipe", stderr: "pipe", env: { ...process.env, LC_ALL: "C" } });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${argv.join(" ")}: exit ${code}\n${err}`);
  return out;
}

async function build(guest: MiniGuest): Promise<void> {
  const work = `${CACHE}.new`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const depends = await run(["apt-cache", "depends", "linux-image-cloud-amd64"], work);
  const kernel = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
  if (kernel === undefined) throw new Error("apt knows no linux-image-cloud-amd64: run apt-get update");
  await run(["apt-get", "download", kernel, "busybox-static"], work);
  for (const name of readdirSync(work)) if (name.endsWith(".deb")) await run(["dpkg-deb", "-x", name, "root"], work);
  const boot = join(work, "root/boot");
  const image = readdirSync(boot).find((name) => name.startsWith("vmlinuz")) ?? "";
  const modules = new Map<string, string>();
  for (const path of (await run(["find", "root", "-name", "*.ko"], work)).trim().split("\n"))
    modules.set(path.replace(/^.*\/(.*)\.ko$/, "$1"), join(work, path));
  const present = MODULES.filter((name) => modules.has(name));
  const folder = (path: string): CpioEntry => ({ path, mode: 0o40755 });
  const busybox = ["bin/busybox", "usr/bin/busybox"].map((path) => join(work, "root", path)).find(existsSync) ?? "";
  const entries: CpioEntry[] = [
    ...["bin", "dev", "proc", "sys", "run", "modules"].map(folder),
    { path: "dev/console", mode: 0o20600, device: [5, 1] },
    { path: "bin/busybox", mode: 0o100755, content: readFileSync(busybox) },
    { path: "init", mode: 0o100755, content: INIT },
    { path: "modules/order", mode: 0o100644, content: `${present.join("\n")}\n` },
    ...present.map((name) => ({
      path: `modules/${name}.ko`,
      mode: 0o100644,
      content: readFileSync(modules.get(name) ?? ""),
    })),
  ];
  mkdirSync(CACHE, { recursive: true });
  renameSync(join(boot, image), guest.path);
  // Last, by rename: its presence says that the guest is whole.
  writeFileSync(`${guest.initrd}.new`, gzipSync(cpio(entries)));
  renameSync(`${guest.initrd}.new`, guest.initrd);
  rmSync(work, { recursive: true, force: true });
}
