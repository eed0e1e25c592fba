import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatError } from "../../kit/app-error.ts";
import type { BootFacts } from "../../kit/paths.ts";
import { fakeHost } from "../../test/support/fake-host.ts";
import { type FakeMedium, mediaFiles, mediaPrograms } from "../../test/support/fake-media.ts";
import { seedReader } from "./driver.ts";

const captured = readFileSync(join(import.meta.dir, "testdata/lsblk-json-b-O-stick-disc-virtio.txt"), "utf8");
const folder = "/run/corium/seed/bootstrap";
const boot: BootFacts = { mode: "live", medium: { device: "/dev/sr0", mountPoint: "/run/corium/medium" } };

const stick: FakeMedium = { filesystem: "vfat", label: "CORIUM", files: { "config.yaml": "role: single\n" } };
const others: FakeMedium = { filesystem: "vfat", label: "HOLIDAY", files: { "config.yaml": "beach" } };
const disc: FakeMedium = { filesystem: "iso9660", label: "cidata", files: { USER_DATA: "#cloud-config\n" } };

function machine(media: Readonly<Record<string, FakeMedium>>, files: Readonly<Record<string, string>> = {}) {
  const plugged = new Map(Object.entries(media));
  let lsblk = captured;
  const host = fakeHost({
    files: { ...mediaFiles, ...files },
    programs: mediaPrograms(() => lsblk, plugged),
  });
  const read = seedReader(host, { boot, folder });
  const look = async () => {
    const reading = await read();
    if (!reading.ok) throw new Error(formatError(reading.error));
    return {
      notes: reading.value.notes,
      files: reading.value.files.map(({ origin, isOurs, content }) => ({
        origin,
        isOurs,
        text: content.ok ? Buffer.from(content.value).toString() : formatError(content.error),
      })),
    };
  };
  return {
    host,
    look,
    plugged,
    setLsblk: (text: string) => void (lsblk = text),
    mounts: () => host.calls.filter((call) => call.startsWith("exec mount")),
    isMounted: () => host.text("/proc/self/mounts")?.includes(folder) === true,
  };
}

describe("seed media", () => {
  test("are read, each mounted read-only and unmounted again", async () => {
    const of = machine({ "/dev/sdb1": stick, "/dev/sr1": disc });
    expect((await of.look()).files).toEqual([
      { origin: "config.yaml on /dev/sdb1 (CORIUM)", isOurs: true, text: "role: single\n" },
      { origin: "user-data on /dev/sr1 (CIDATA)", isOurs: false, text: "#cloud-config\n" },
    ]);
    expect(of.mounts()).toEqual([
      `exec mount -t vfat -o ro,nosuid,nodev,noexec /dev/sdb1 ${folder}`,
      `exec mount -t iso9660 -o ro,nosuid,nodev,noexec /dev/sr1 ${folder}`,
    ]);
    expect(of.isMounted()).toBe(false);
    expect(of.host.node(folder)?.mode).toBe(0o700);
  });

  test("are not looked for on a disk that stays in the machine, and the log says so", async () => {
    const of = machine({ "/dev/sdb1": others, "/dev/vda": { ...disc, label: "CIDATA" } });
    const { files, notes } = await of.look();
    expect(files).toEqual([]);
    expect(of.mounts()).toEqual([]);
    expect(notes.join()).toContain("/dev/vda is labelled CIDATA, but seeds are read from removable media only");
  });

  test("B081: a network-config beside the user-data is not used, and that is said", async () => {
    const files = { ...disc.files, "network-config": "version: 2", "meta-data": "" };
    const { notes } = await machine({ "/dev/sdb1": others, "/dev/sr1": { ...disc, files } }).look();
    expect(notes.filter((note) => note.includes("/dev/sr1"))).toEqual([
      "network-config on /dev/sr1 (CIDATA) is not used: there is no cloud-init here; addresses are given with ip= on the kernel command line",
    ]);
  });

  test("without their file are noted", async () => {
    const of = machine({ "/dev/sdb1": others, "/dev/sr1": { ...disc, files: { "meta-data": "x" } } });
    const { files, notes } = await of.look();
    expect(files).toEqual([]);
    expect(notes.join()).toContain("/dev/sr1 is labelled CIDATA, but has no user-data");
  });

  test.each(["mount", "find", "base64"] as const)(
    "one that hangs or is damaged when it comes to %s is an error which names it, and stays nowhere mounted",
    async (program) => {
      for (const fault of [{ hangs: program }, { damagedFor: program }]) {
        const of = machine({ "/dev/sdb1": { ...stick, ...fault }, "/dev/sr1": disc });
        const { files } = await of.look();
        expect(files[0]?.text).toMatch(/\/dev\/sdb1 can't be (mounted|listed|read): /);
        expect(files[0]?.text).toMatch("hangs" in fault ? /did not end in time/ : /Input\/output error/);
        // The others are read all the same: who asks sees all at once.
        expect(files[1]?.text).toBe("#cloud-config\n");
        expect(of.isMounted()).toBe(false);
      }
    },
  );

  test("one that can't be unmounted is detached", async () => {
    const of = machine({ "/dev/sdb1": { ...stick, hangs: "umount" } });
    expect((await of.look()).files[0]?.text).toBe("role: single\n");
    expect(of.host.calls).toContain(`exec umount --lazy ${folder}`);
    expect(of.isMounted()).toBe(false);
  });

  test("one that can't be probed is what udev took it for", async () => {
    const of = machine({
      "/dev/sdb1": { ...stick, hangs: "blkid" },
      "/dev/sdb": { ...stick, label: "X", hangs: "blkid" },
    });
    const { files, notes } = await of.look();
    expect(files.map(({ origin }) => origin)).toEqual(["config.yaml on /dev/sdb1 (CORIUM)"]);
    expect(notes.join()).toContain("/dev/sdb can't be searched for a seed: it did not end in time");
  });

  test("one that udev has read and that can't be read any more is an error, not an absence", async () => {
    const [file] = (await machine({}).look()).files;
    expect(file?.text).toContain("/dev/sdb1 can't be mounted");
  });

  test("one with a filesystem that is not read is an error, not an absence", async () => {
    const [file] = (await machine({ "/dev/sdb1": { ...stick, filesystem: "exfat" } }).look()).files;
    expect(file?.text).toContain("/dev/sdb1 holds exfat, which is not read");
    expect(file?.text).toContain("FAT, ISO 9660 or ext4");
  });

  test("are read once, until one is changed: no disc spins up every few seconds", async () => {
    const of = machine({ "/dev/sdb1": stick });
    const first = await of.look();
    expect(await of.look()).toEqual(first);
    expect(of.mounts()).toHaveLength(1);
    of.plugged.set("/dev/sdb1", { ...stick, files: { "config.yaml": "role: worker\n" } });
    of.setLsblk(captured.replaceAll(/"disk-seq": *(\d+)/g, '"disk-seq": 1$1'));
    expect((await of.look()).files[0]?.text).toBe("role: worker\n");
  });

  test("two that ask at once do not mount over each other", async () => {
    const of = machine({ "/dev/sdb1": stick });
    const [a, b] = await Promise.all([of.look(), of.look()]);
    expect(a).toEqual(b);
    expect(of.mounts()).toHaveLength(1);
  });

  test("a stick that is still being set up is waited for, one that never comes is not", async () => {
    const usb = { "/sys/bus/usb/drivers/usb-storage/2-1.4:1.0/x": "", "/sys/bus/usb/drivers/usb-storage/module/x": "" };
    const of = machine({ "/dev/sdb1": stick }, usb);
    const startMs = of.host.clock.monotonicMs();
    expect((await of.look()).files).toHaveLength(1);
    expect(of.host.clock.monotonicMs() - startMs).toBe(10_000);
    const target = "../../devices/pci0000:00/usb2/2-1/2-1.4/2-1.4:1.0/host6/target6:0:0/6:0:0:0/block/sdb";
    of.host.put("/sys/class/block/sdb", "", { kind: "symlink", target });
    const againMs = of.host.clock.monotonicMs();
    await of.look();
    expect(of.host.clock.monotonicMs()).toBe(againMs);
  });

  test("when the devices can't be listed nothing is known", async () => {
    const host = fakeHost({ files: mediaFiles, programs: { lsblk: () => ({ exitCode: 1, stderr: "lsblk: failed" }) } });
    const reading = await seedReader(host, { boot, folder })();
    expect(reading).toMatchObject({ ok: false, error: { code: "lsblk" } });
  });
});
