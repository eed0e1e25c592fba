import { describe, expect, test } from "bun:test";
import type { Disk, Inventory } from "../kit/disk.ts";
import type { BootFacts } from "../kit/paths.ts";
import { nodePaths } from "../kit/paths.ts";
import { fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import type { KnownVolume } from "../luks/model.ts";
import { PARTITIONS } from "../iso/layout.ts";
import { partUuidsOf } from "../iso/uuids.ts";
import { memoryState } from "../state/open.ts";
import { machine } from "../test/machines/machines.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { isReKeyed, reKey } from "./re-key.ts";
import { createRescue } from "./rescue.ts";

const uuids = partUuidsOf("ab".repeat(16));
const folder = "/run/corium/rescue";
const vault: KnownVolume = { name: "vault", uuid: "u-1", unlock: "tpm2" };

function installed(path: string, type = "ext4"): Disk {
  const blank = machine("blank-pair").disks.find(({ identity }) => identity.serial === "A");
  if (blank === undefined) throw new Error("no disk");
  return {
    ...blank,
    path,
    identity: { serial: path, sizeBytes: blank.sizeBytes },
    partitions: PARTITIONS.map(({ role, number, name }) => ({
      path: `${path}${number}`,
      number,
      sizeBytes: 2 ** 20,
      partUuid: uuids[role],
      label: name,
    })),
    signatures: [7, 8].map((number) => ({ type, device: `${path}${number}`, where: `partition ${number}` })),
  };
}

function rescueOn(
  boot: BootFacts,
  disks: readonly Disk[],
  more: { readonly mounts?: string; readonly e2fsck?: number; readonly files?: Readonly<Record<string, string>> } = {},
) {
  const inventory: Inventory = { disks, arrays: [], unknown: [] };
  const host = fakeHost({
    files: {
      "/proc/self/mounts": more.mounts ?? "",
      "/proc/sys/kernel/hostname": "n1\n",
      ...more.files,
    },
    programs: {
      mount: () => "",
      umount: () => "",
      systemctl: () => "",
      ip: () => "[]",
      e2fsck: () => ({ exitCode: more.e2fsck ?? 0, stdout: "Pass 1: Checking inodes\n\nPass 2\n" }),
    },
  });
  const state = memoryState();
  state.claim.record({ operatorCA: "pem", fingerprint: "SHA256:old", atMs: 1, by: "enroll" });
  const opened: string[] = [];
  const rescue = createRescue({
    host,
    paths: nodePaths(),
    boot,
    readInventory: async () => ok(inventory),
    openState: async ({ database }) => {
      opened.push(database);
      return ok({ ...state, close: () => undefined });
    },
    reKey,
    volumesOf: () => ({
      known: () => [vault],
      read: Object.assign(async () => [{ name: "vault", unlock: "tpm2" as const, state: "locked" as const }], {
        forget: () => undefined,
      }),
    }),
    unlock: async (_, { name }, key) =>
      key.reveal() === "right" ? ok({ isBoundAnew: true }) : fail("wrong-key", `the key does not open volume ${name}`),
  });
  const ran = (program: string): string[] => host.calls.filter((call) => call.startsWith(`exec ${program} `));
  return { rescue, host, state, opened, ran };
}

const fromDisk: BootFacts = {
  mode: "disk",
  partUuids: { esp: "", boot: "", root: "", state: uuids.state, data: uuids.data },
};
const mounted = "/dev/vda8 /var ext4 rw 0 0\n/dev/vda7 /var/lib/corium ext4 rw 0 0\n";

describe("on the rescue boot of the disk itself", () => {
  test("only the partitions of this boot are seen, and re-keying works on the state that is mounted", async () => {
    const other = {
      ...installed("/dev/vdb"),
      partitions: installed("/dev/vdb").partitions.map((each) => ({ ...each, partUuid: "x" })),
    };
    const files = { "/var/lib/corium/corium.db": "db" };
    const of = rescueOn(fromDisk, [installed("/dev/vda"), other], { mounts: mounted, files });
    const sight = await of.rescue.look();
    expect(sight.ok && sight.value.systems).toMatchObject([{ name: "n1", device: "/dev/vda7" }]);
    expect(sight.ok && sight.value.filesystems.map(({ device, isMounted }) => [device, isMounted])).toEqual([
      ["/dev/vda7", true],
      ["/dev/vda8", true],
    ]);
    expect(await of.rescue.reKey("/dev/vda7")).toEqual({ ok: true, value: "SHA256:old" });
    expect([of.opened, isReKeyed(of.state), of.ran("mount")]).toEqual([["/var/lib/corium/corium.db"], true, []]);
    expect(await of.rescue.reKey("/dev/vda7")).toMatchObject({ ok: false, error: { code: "unclaimed" } });
  });

  test("a mirrored system's file systems are its arrays, not their members", async () => {
    const disks = [installed("/dev/vda", "linux_raid_member"), installed("/dev/vdb", "linux_raid_member")];
    const files = { "/var/lib/corium/corium.db": "db", "/dev/md/corium-state": "", "/dev/md/corium-data": "" };
    const mounts = "/dev/md/corium-state /var/lib/corium ext4 rw 0 0\n";
    const of = rescueOn(fromDisk, disks, { mounts, files });
    const sight = await of.rescue.look();
    expect(sight.ok && sight.value.filesystems.map(({ device, isMounted }) => [device, isMounted])).toEqual([
      ["/dev/md/corium-state", true],
      ["/dev/md/corium-data", false],
    ]);
    expect(sight.ok && sight.value.systems).toHaveLength(1);
    expect((await of.rescue.reKey("/dev/md/corium-state")).ok).toBe(true);
    expect((await of.rescue.repair("/dev/md/corium-data")).ok).toBe(true);
    expect(of.ran("e2fsck")).toEqual(["exec e2fsck -f -y /dev/md/corium-data"]);
  });

  test("a volume is opened with its key, and said in the events; from the medium no volume is anybody's", async () => {
    const files = { "/var/lib/corium/corium.db": "db" };
    const of = rescueOn(fromDisk, [installed("/dev/vda")], { mounts: mounted, files });
    expect(await of.rescue.lockedVolumes()).toEqual(ok(["vault"]));
    const wrong = await of.rescue.unlock("vault", new Secret("key", "left"));
    expect(wrong).toMatchObject({ ok: false, error: { code: "wrong-key" } });
    expect(of.state.events.last()).toEqual([]);
    const opened = await of.rescue.unlock("vault", new Secret("key", "right"));
    expect(opened).toEqual(ok(["the TPM opens it again from the next boot on"]));
    expect(of.state.events.last().map(({ message }) => message)).toEqual([
      "volume vault was opened at the rescue menu",
    ]);
    expect(await of.rescue.unlock("attic", new Secret("key", "right"))).toMatchObject({ ok: false });
    // k0s and what else waits for the volume stay down.
    expect(of.ran("systemctl")).toEqual([]);
    const live = rescueOn({ mode: "live" }, [installed("/dev/vda")], { files });
    expect(await live.rescue.lockedVolumes()).toMatchObject({ ok: false, error: { code: "live" } });
  });

  test("a reset is written down for the next boot, needs no database, and is not begun without a state", async () => {
    const files = { "/var/lib/corium/etc/machine-id": "0\n" };
    const of = rescueOn(fromDisk, [installed("/dev/vda")], { mounts: mounted, files });
    expect((await of.rescue.reset("/dev/vda7", true)).ok).toBe(true);
    expect(JSON.parse(of.host.text("/var/lib/corium/reset.json") ?? "")).toMatchObject({
      isWipingDisks: true,
      mayDestroyCluster: true,
      requestedBy: "somebody at the rescue menu",
    });
    expect(of.host.node("/var/lib/corium/reset-erasing")).toBeDefined();
    expect(of.opened).toEqual([]);
    const bare = rescueOn(fromDisk, [installed("/dev/vda")], { mounts: mounted });
    expect(await bare.rescue.reset("/dev/vda7", false)).toMatchObject({ ok: false, error: { code: "no-state" } });
    expect(bare.host.text("/var/lib/corium/reset.json")).toBeUndefined();
  });

  test("a state that could not be mounted is not taken for an empty one", async () => {
    const of = rescueOn(fromDisk, [installed("/dev/vda")]);
    expect(await of.rescue.reKey("/dev/vda7")).toMatchObject({ ok: false, error: { code: "no-state" } });
    expect(of.opened).toEqual([]);
  });

  test("what is mounted is not checked; what is not is repaired, and told when it can't be", async () => {
    const whole = rescueOn(fromDisk, [installed("/dev/vda")], { mounts: mounted });
    expect(await whole.rescue.repair("/dev/vda8")).toMatchObject({ ok: false, error: { code: "mounted" } });
    expect(whole.ran("e2fsck")).toEqual([]);
    const half = mounted.split("\n").slice(1).join("\n");
    const damaged = rescueOn(fromDisk, [installed("/dev/vda")], { mounts: half, e2fsck: 1 });
    expect(await damaged.rescue.repair("/dev/vda8")).toEqual({
      ok: true,
      value: ["Pass 1: Checking inodes", "Pass 2", "repaired"],
    });
    expect(damaged.ran("e2fsck")).toEqual(["exec e2fsck -f -y /dev/vda8"]);
    const lost = rescueOn(fromDisk, [installed("/dev/vda")], { mounts: half, e2fsck: 8 });
    expect(await lost.rescue.repair("/dev/vda8")).toMatchObject({ ok: false, error: { code: "check" } });
    expect(await lost.rescue.repair("/dev/sda1")).toMatchObject({ ok: false, error: { code: "gone" } });
  });

  test("starting the node leaves the menu's target, restarting and switching off are systemd's", async () => {
    const of = rescueOn(fromDisk, [installed("/dev/vda")]);
    for (const way of ["start", "reboot", "poweroff"] as const) expect((await of.rescue.leave(way)).ok).toBe(true);
    expect(of.ran("systemctl")).toEqual([
      "exec systemctl --no-block isolate multi-user.target",
      "exec systemctl --no-block reboot",
      "exec systemctl --no-block poweroff",
    ]);
  });
});

describe("from the medium", () => {
  const live: BootFacts = { mode: "live" };

  test("looking writes nothing; re-keying mounts the state for as long as it takes", async () => {
    const files = { [`${folder}/etc/hostname`]: "n7\n", [`${folder}/corium.db`]: "db" };
    const blank = machine("blank-pair").disks.filter(({ identity }) => identity.serial === "B");
    const of = rescueOn(live, [installed("/dev/vda"), ...blank], { files });
    const sight = await of.rescue.look();
    expect(sight.ok && sight.value.systems.map(({ name }) => name)).toEqual(["n7"]);
    expect(of.ran("mount")).toEqual([`exec mount -t ext4 -o ro,noload /dev/vda7 ${folder}`]);
    expect((await of.rescue.reKey("/dev/vda7")).ok).toBe(true);
    expect(of.opened).toEqual([`${folder}/corium.db`]);
    expect(of.ran("mount").at(-1)).toBe(`exec mount -t ext4 -o rw /dev/vda7 ${folder}`);
    expect(of.ran("umount")).toHaveLength(of.ran("mount").length);
  });

  test("a member of a mirror is never mounted or checked by itself", async () => {
    const of = rescueOn(live, [installed("/dev/vda", "linux_raid_member")]);
    const sight = await of.rescue.look();
    expect(sight.ok && sight.value.systems[0]?.problem).toBe("it holds linux_raid_member, not ext4 alone");
    expect((await of.rescue.reKey("/dev/vda7")).ok).toBe(false);
    expect((await of.rescue.repair("/dev/vda8")).ok).toBe(false);
    expect([...of.ran("mount"), ...of.ran("e2fsck")]).toEqual([]);
  });
});
