/** A machine with the two disks of a mirrored system: md, lsblk and the tools that write ESPs, as far as they matter. */
import { PARTITIONS } from "../../iso/layout.ts";
import type { MirroredRole } from "../../iso/uuids.ts";
import { arrayUuidOf, guidOf, MIRRORED_ROLES, partUuidsOf, twinOf } from "../../iso/uuids.ts";
import type { FakeHost } from "./fake-host.ts";
import { fakeHost } from "./fake-host.ts";

export const INSTALLATION = "0123456789abcdef0123456789abcdef";

export interface FakeDisk {
  /** Of this boot: `vda`. */
  name: string;
  /** Of whose UUIDs its table is. */
  installation: string;
  isThere: boolean;
  /** Its partitions were never members. */
  isBlank: boolean;
  /** Of all its members alike. */
  state: "in_sync" | "spare" | "faulty" | "out";
  /** It was started without the other one at some time. */
  hasRunAlone: boolean;
  code: string;
  core: string;
  isFat: boolean;
  /** Content by path below the ESP. */
  readonly esp: Map<string, string>;
}

export interface FakeMirror {
  readonly host: FakeHost;
  readonly disks: readonly [FakeDisk, FakeDisk];
  /** Whether each array was made writable, so that a copy goes on. */
  readonly isCopying: () => boolean;
  /** What the kernel shows after a change of the disks. */
  readonly show: () => void;
  /** Power comes back: nothing is mounted, and what was not unmounted yet is not on the ESP. */
  readonly reboot: () => void;
}

const numberOf = (role: string): number => PARTITIONS.find((each) => each.role === role)?.number ?? 0;

export function fakeMirror(env: string): FakeMirror {
  const disk = (name: string, installation: string): FakeDisk => ({
    name,
    installation,
    isThere: true,
    isBlank: false,
    state: "in_sync",
    hasRunAlone: false,
    code: "boot code",
    core: "core",
    isFat: true,
    esp: new Map([
      ["EFI/BOOT/BOOTX64.EFI", "shim"],
      ["corium/id.cfg", `set installation=${INSTALLATION}\n`],
      ["corium/env", env],
    ]),
  });
  const disks = [disk("vda", INSTALLATION), disk("vdb", twinOf(INSTALLATION))] as const;
  const there = (): readonly FakeDisk[] => disks.filter(({ isThere }) => isThere);
  const mounts = new Map<string, FakeDisk>();
  /** Arrays that something wrote to: state and data from the first mount on. */
  const written = new Set(["/dev/md124", "/dev/md125"]);
  const diskOf = (path: string): FakeDisk | undefined =>
    there().find(
      ({ name, installation }) =>
        path.startsWith(`/dev/${name}`) ||
        Object.values(partUuidsOf(installation)).some((partUuid) => path.endsWith(partUuid)),
    );
  const roleOf = ({ installation }: FakeDisk, path: string): MirroredRole | undefined =>
    MIRRORED_ROLES.find(
      (role) => path.endsWith(String(numberOf(role))) || path.endsWith(partUuidsOf(installation)[role]),
    );
  /** `/dev/vda`: its boot code; `/dev/vda1`: the core image. */
  const part = (path: string): "code" | "core" => (path.endsWith("1") ? "core" : "code");

  const lsblk = (): string =>
    JSON.stringify({
      blockdevices: there().map(({ name, installation }) => ({
        name,
        kname: name,
        path: `/dev/${name}`,
        type: "disk",
        size: 6 * 1024 ** 3,
        "log-sec": 512,
        children: PARTITIONS.map((each) => ({
          name: `${name}${each.number}`,
          kname: `${name}${each.number}`,
          path: `/dev/${name}${each.number}`,
          type: "part",
          size: 1,
          partn: each.number,
          partuuid: each.role === "bios" ? guidOf(installation) : partUuidsOf(installation)[each.role],
          partlabel: each.name,
        })),
      })),
    });

  const mdadm = (argv: readonly string[]): string | { exitCode: number; stdout?: string; stderr?: string } => {
    const path = argv.at(-1) ?? "";
    const found = diskOf(path);
    if (argv.includes("--examine")) {
      const role = found === undefined || found.isBlank ? undefined : roleOf(found, path);
      if (found === undefined || role === undefined) return { exitCode: 1 };
      const state = found.hasRunAlone ? "A." : "AA";
      return argv.includes("--export")
        ? `MD_UUID=${arrayUuidOf(INSTALLATION, role)}\n`
        : `   Array State : ${state} ('A' == active, '.' == missing, 'R' == replacing)\n`;
    }
    if (argv.includes("--detail")) {
      const role = MIRRORED_ROLES.find((each) => path.endsWith(arrayUuidOf(INSTALLATION, each))) ?? "data";
      const members = disks.filter(({ state }) => state !== "out").map(({ name }) => `${name}${numberOf(role)}`);
      return members.map((each, at) => `MD_DEVICE_${each}_ROLE=${at}\nMD_DEVICE_${each}_DEV=/dev/${each}\n`).join("");
    }
    // As mdadm 4.4 does: what it shall change goes by a short name.
    const long = argv.find((word) => word.startsWith("/dev/disk/by-id/md-uuid-"));
    if (long !== undefined) {
      const stderr = `mdadm: Value "${long}" cannot be set as devname. Reason: Too long or empty.`;
      return { exitCode: 1, stderr };
    }
    if (argv.includes("--zero-superblock")) return "";
    if (argv.includes("--readwrite")) {
      written.add(path);
      return "";
    }
    if (argv.includes("--remove")) {
      for (const each of disks) if (!each.isThere && argv.includes("detached")) each.state = "out";
    } else if (found !== undefined) {
      found.state = "spare";
      found.isBlank = false;
    }
    return "";
  };

  const mount = (argv: readonly string[], fake: FakeHost): string | { exitCode: number; stderr: string } => {
    const [device = "", folder = ""] = argv.slice(-2);
    const found = diskOf(device);
    if (found?.isFat !== true) return { exitCode: 32, stderr: `mount: ${folder}: no FAT` };
    mounts.set(folder, found);
    for (const [name, content] of found.esp) fake.put(`${folder}/${name}`, content);
    return "";
  };
  const umount = (folder: string, fake: FakeHost): string => {
    const found = mounts.get(folder);
    for (const path of fake.paths(`${folder}/`)) {
      found?.esp.set(path.slice(folder.length + 1), fake.text(path) ?? "");
      fake.drop(path);
    }
    mounts.delete(folder);
    return "";
  };
  const dd = (argv: readonly string[], stdin: string, fake: FakeHost): string => {
    const value = (key: string): string => argv.find((each) => each.startsWith(`${key}=`))?.slice(key.length + 1) ?? "";
    const [from, to] = [diskOf(value("if")), diskOf(value("of"))];
    if (value("if") === "") fake.put(value("of"), stdin);
    else if (from !== undefined && to !== undefined) to[part(value("of"))] = from[part(value("if"))];
    return "";
  };
  const contentOf = (fake: FakeHost, folder: string): string =>
    JSON.stringify(
      fake
        .paths(`${folder}/`)
        .filter((path) => !path.endsWith("/env"))
        .map((path) => [path.slice(folder.length), fake.text(path)]),
    );

  const host = fakeHost({
    keptEtc: null,
    programs: {
      lsblk,
      mdadm: ({ argv }) => mdadm(argv),
      mount: ({ argv }, fake) => mount(argv, fake),
      umount: ({ argv }, fake) => umount(argv.at(-1) ?? "", fake),
      dd: ({ argv, stdinText }, fake) => dd(argv, stdinText, fake),
      cmp: ({ argv }) => {
        const [a = "", b = ""] = argv.slice(-2);
        return { exitCode: diskOf(a)?.[part(a)] === diskOf(b)?.[part(b)] ? 0 : 1 };
      },
      diff: ({ argv }, fake) => {
        const [a = "", b = ""] = argv.slice(-2);
        return { exitCode: contentOf(fake, a) === contentOf(fake, b) ? 0 : 1 };
      },
      "mkfs.vfat": ({ argv }) => {
        const found = diskOf(argv.at(-1) ?? "");
        found?.esp.clear();
        if (found !== undefined) found.isFat = true;
        return "";
      },
      cp: ({ argv }, fake) => {
        const [a = "", b = ""] = argv.slice(-2);
        for (const path of fake.paths(a)) fake.put(b + path.slice(a.length), fake.text(path) ?? "");
        return "";
      },
      sync: () => "",
      mkdir: () => "",
    },
  });
  const show = (): void => {
    for (const path of [...host.paths("/sys/block/"), ...host.paths("/sys/class/block/")]) host.drop(path);
    for (const { name, installation } of there()) {
      for (const { role, number } of PARTITIONS) {
        const link = `/dev/disk/by-partuuid/${partUuidsOf(installation)[role]}`;
        host.put(link, "", { kind: "symlink", target: `/dev/${name}${number}` });
        host.put(`/dev/${name}${number}`, "");
      }
      host.put(`/sys/block/${name}/size`, "1");
      for (const { number } of PARTITIONS) host.put(`/sys/class/block/${name}${number}/partition`, String(number));
    }
    MIRRORED_ROLES.forEach((role, at) => {
      const array = `/sys/block/md${120 + at}/md`;
      const link = `/dev/disk/by-id/md-uuid-${arrayUuidOf(INSTALLATION, role)}`;
      host.put(link, "", { kind: "symlink", target: `/dev/md${120 + at}` });
      host.put(`/dev/md${120 + at}`, "");
      host.put(`${array}/array_state`, written.has(`/dev/md${120 + at}`) ? "clean\n" : "read-auto\n");
      host.put(`${array}/uuid`, `${guidOf(arrayUuidOf(INSTALLATION, role).replaceAll(":", ""))}\n`);
      for (const { name, state } of disks.filter((each) => each.state !== "out"))
        host.put(`${array}/dev-${name}${numberOf(role)}/state`, `${state}\n`);
    });
  };
  show();
  const reboot = (): void => {
    mounts.clear();
    host.boot();
    show();
  };
  return { host, disks, show, reboot, isCopying: () => written.size === MIRRORED_ROLES.length };
}
