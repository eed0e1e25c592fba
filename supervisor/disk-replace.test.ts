import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Disk, DiskIdentity, Inventory, OwnedStorage } from "../kit/disk.ts";
import { ok } from "../kit/result.ts";
import { parseDocument } from "../config/load.ts";
import type { State } from "../state/open.ts";
import { memoryState } from "../state/open.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import type { DiskReplacing } from "./disk-replace.ts";
import { beginReplace, planReplace, resumeReplace } from "./disk-replace.ts";

// A power cut at each of a few hundred calls.
setDefaultTimeout(60_000);

const uuid = "557c5b94:881be2de:bc5f369b:49d8761f";
const sizeBytes = 512 * 1024 * 1024;
const identity = (serial: string): DiskIdentity => ({ serial, sizeBytes });
const record: OwnedStorage = { kind: "raid", name: "data", uuid, disks: [identity("A"), identity("B")] };
const document = `role: single
cluster: { name: demo }
raid: [{ name: data, level: 1, devices: [{ serial: A }, { serial: B }], mountPoint: /srv/data }]
`;
const request = { array: "data", old: "B", new: "C", isWipeAllowed: true };

type Seat = { slot: number | undefined; state: "in_sync" | "spare" | "faulty" };

/** What survives a power cut: disks with their superblocks and signatures, and who sits in the mirror. */
class Kernel {
  readonly disks = new Map([
    ["vda", { serial: "A", superblock: true, isOld: false }],
    ["vdb", { serial: "B", superblock: true, isOld: false }],
    ["vdc", { serial: "C", superblock: false, isOld: true }],
  ]);
  readonly seats = new Map<string, Seat>([
    ["vda", { slot: 0, state: "in_sync" }],
    ["vdb", { slot: 1, state: "in_sync" }],
  ]);
  looks = 0;
  leastActive = 2;

  get active(): number {
    return [...this.seats.values()].filter(({ state }) => state === "in_sync").length;
  }

  /** A few looks later a rebuild is over, and who was replaced is out. */
  look(): void {
    const busy = [...this.seats].find(([, { slot, state }]) => state === "spare" && slot !== undefined);
    if (busy === undefined || (this.looks += 1) % 4 !== 0) return;
    const [name, seat] = busy;
    for (const [other, each] of this.seats) if (other !== name && each.slot === seat.slot) each.state = "faulty";
    seat.state = "in_sync";
  }

  show(host: FakeHost): void {
    const letter = { in_sync: "", spare: "(S)", faulty: "(F)" } as const;
    const list = [...this.seats].map(([name, { slot, state }], at) => {
      return `${name}[${at}]${state === "spare" && slot !== undefined ? "" : letter[state]}`;
    });
    const isBusy = [...this.seats.values()].some(({ slot, state }) => state === "spare" && slot !== undefined);
    const bar = isBusy ? "      [==>..]  recovery = 12.0% (1/2) finish=1min speed=1K/sec\n" : "";
    host.put(
      "/proc/mdstat",
      `md127 : active raid1 ${list.join(" ")}\n      1 blocks super 1.2 [2/${Math.min(2, this.active)}] [UU]\n${bar}`,
    );
    for (const name of this.disks.keys()) host.put(`/sys/class/block/${name}/diskseq`, "1\n");
    for (const [name, { slot, state }] of this.seats) {
      host.put(`/sys/block/md127/md/dev-${name}/state`, `${state}\n`);
      host.put(`/sys/block/md127/md/dev-${name}/slot`, `${slot ?? "none"}\n`);
    }
    this.leastActive = Math.min(this.leastActive, this.active);
  }

  mdadm(argv: readonly string[]): string | { readonly exitCode: number; readonly stderr: string } {
    const no = (stderr: string) => ({ exitCode: 1, stderr: `mdadm: ${stderr}\n` });
    const name = argv.at(-1)?.replace("/dev/", "") ?? "";
    const disk = this.disks.get(name);
    if (argv.includes("--detail")) {
      this.look();
      return `MD_UUID=${uuid}\nMD_DEVICES=2\nMD_NAME=any:data\n            Events : 34\n`;
    }
    if (argv.includes("--examine")) return disk?.superblock === true ? `MD_UUID=${uuid}\n` : no("no superblock");
    if (argv.includes("--remove") && (name === "failed" || name === "detached")) return "";
    if (disk === undefined) return no(`no ${name}`);
    const seat = this.seats.get(name);
    if (argv.includes("--zero-superblock")) {
      if (seat !== undefined) return no("device is busy");
      disk.superblock = false;
    } else if (argv.includes("--add")) {
      if (disk.superblock) return no("not performing --add as that would convert it in to a spare");
      if (disk.isOld) return no("it holds data");
      disk.superblock = true;
      this.seats.set(name, { slot: undefined, state: "spare" });
    } else if (argv.includes("--replace")) {
      const leaving = this.seats.get(argv[3]?.replace("/dev/", "") ?? "");
      if (seat?.state !== "spare" || leaving?.state !== "in_sync") return no("not a spare");
      seat.slot = leaving.slot;
    } else if (argv.includes("--remove")) {
      if (seat?.state === "in_sync") return no("hot remove failed: device is busy");
      this.seats.delete(name);
    }
    return "";
  }
}

interface Rig {
  readonly host: FakeHost;
  readonly kernel: Kernel;
  readonly state: State;
  readonly replacing: DiskReplacing;
}

function rig(): Rig {
  const kernel = new Kernel();
  const host: FakeHost = fakeHost({
    programs: {
      mdadm: ({ argv }) => {
        const said = kernel.mdadm(argv);
        kernel.show(host);
        return said;
      },
      lsblk: () =>
        JSON.stringify({
          blockdevices: [...kernel.disks].map(([name, { serial }]) => {
            return { path: `/dev/${name}`, kname: name, type: "disk", size: sizeBytes, serial };
          }),
        }),
      udevadm: () => "",
      blkid: () => ({ exitCode: 2 }),
      sync: () => "",
      wipefs: ({ argv }) => {
        const disk = kernel.disks.get(argv.at(-1)?.replace("/dev/", "") ?? "");
        if (argv.includes("-a") && disk !== undefined) disk.isOld = false;
        const found = disk?.isOld === true ? [{ type: "ext4", offset: "0x438" }] : [];
        return argv.includes("-J") && found.length > 0 ? JSON.stringify({ signatures: found }) : "";
      },
    },
  });
  kernel.show(host);
  const state = memoryState();
  const stored = state.documents.add({ text: document, atMs: 1, requester: { kind: "document" }, origin: "apply" });
  const recorded = { hostname: "n", machineId: "m", addresses: {}, k0sVersion: "v1", inputHash: "h" } as const;
  state.baseline.set({
    document: stored,
    ...recorded,
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
  });
  state.owned.put(record);
  // It lies on the array.
  state.owned.put({ ...record, kind: "luks", name: "secret", uuid: "v" });
  const replacing: DiskReplacing = {
    host,
    state,
    version: "1",
    parse: (text, nowMs) => parseDocument(text, { nowMs }),
    inventory: async () => ok(inventoryOf(kernel)),
    identities: async () => new Map([...kernel.disks].map(([name, { serial }]) => [name, identity(serial)])),
    say: () => {},
  };
  return { host, kernel, state, replacing };
}

function inventoryOf(kernel: Kernel): Inventory {
  const disks = [...kernel.disks].map(([name, { serial, superblock, isOld }]): Disk => {
    const path = `/dev/${name}`;
    const where = "the whole disk";
    return {
      path,
      links: [],
      identity: identity(serial),
      sizeBytes,
      logicalSectorBytes: 512,
      physicalSectorBytes: 512,
      bus: "virtio",
      type: "ssd",
      isRemovable: false,
      isReadOnly: false,
      partitions: [],
      signatures: superblock
        ? [{ type: "linux_raid_member", device: path, where, uuid }]
        : isOld
          ? [{ type: "ext4", device: path, where }]
          : [],
      users: kernel.seats.has(name) ? [{ kind: "md", name: "md127", isBusy: true }] : [],
      isBootMedium: false,
      isSystemDisk: false,
    };
  });
  return { disks, arrays: [], unknown: [] };
}

async function begin({ replacing }: Rig): Promise<{ readonly finished: Promise<void> }> {
  const planned = await planReplace(replacing, request);
  if (!planned.ok) throw new Error(planned.error.message);
  expect(planned.value.findings).toEqual([]);
  const begun = beginReplace(replacing, request, planned.value, { kind: "local" });
  if (begun.kind !== "begun") throw new Error("busy");
  return begun;
}

/** As the next daemon sees it: whoever ran the operation is gone. */
const asNext = ({ replacing, state }: Rig): DiskReplacing => ({
  ...replacing,
  state: {
    ...state,
    operations: {
      ...state.operations,
      abandoned: () => state.operations.list().filter(({ phase }) => phase === "running"),
    },
  },
});

function expectReplaced({ kernel, state }: Rig): void {
  expect([...kernel.seats].map(([name, { slot, state: is }]) => `${name} ${slot} ${is}`)).toEqual([
    "vda 0 in_sync",
    "vdc 1 in_sync",
  ]);
  expect(kernel.disks.get("vdb")?.superblock).toBe(false);
  expect(state.owned.list()).toHaveLength(2);
  for (const { disks } of state.owned.list()) expect(disks.map(({ serial }) => serial)).toEqual(["A", "C"]);
  expect(state.operations.list().map(({ kind, phase }) => `${kind} ${phase}`)).toEqual(["disk-replace succeeded"]);
  expect(state.replacements.done()).toMatchObject([{ array: "data", old: { serial: "B" }, new: { serial: "C" } }]);
  expect(state.replacements.open()).toBeUndefined();
  expect(state.journal.intents().every(({ closedAtMs }) => closedAtMs !== undefined)).toBe(true);
  // There was no moment with less than two whole copies.
  expect(kernel.leastActive).toBe(2);
}

describe("a disk of an array is replaced", () => {
  test("the old one serves until the new one has everything", async () => {
    const machine = rig();
    await (
      await begin(machine)
    ).finished;
    expectReplaced(machine);
    const steps = machine.state.operations.list()[0]?.steps.map(({ id, state }) => `${id} ${state}`);
    expect(steps).toEqual([
      "raid:data:replace:1:wipe done",
      "raid:data:replace:1:add done",
      "raid:data:replace:1:rebuild done",
      "raid:data:replace:1:retire done",
    ]);
    expect(machine.state.events.last().map(({ kind }) => kind)).toEqual(["disk-replaced"]);
  });

  test("one at a time", async () => {
    const machine = rig();
    const planned = await planReplace(machine.replacing, request);
    if (!planned.ok) throw new Error(planned.error.message);
    const busy = rig();
    busy.state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    expect(beginReplace(busy.replacing, request, planned.value, { kind: "local" }).kind).toBe("busy");
    expect(busy.state.replacements.open()).toBeUndefined();
  });

  test("the new disk dies in the rebuild: failed, said, and the record is as before", async () => {
    const machine = rig();
    const { kernel, host, state } = machine;
    const { finished } = await begin(machine);
    host.programs.set("mdadm", ({ argv }) => {
      const seat = kernel.seats.get("vdc");
      if (seat?.slot !== undefined) seat.state = "faulty";
      const said = kernel.mdadm(argv);
      kernel.show(host);
      return said;
    });
    await finished;
    expect(state.operations.list()[0]?.phase).toBe("failed");
    expect(state.operations.list()[0]?.failureReason).toContain("the new disk /dev/vdc of array data is failed");
    expect(state.owned.list()).toContainEqual(record);
    expect([state.replacements.open(), state.replacements.done()]).toEqual([undefined, []]);
    expect(kernel.leastActive).toBe(2);
  });

  test("power is lost at any call: the next start goes on, and the end is the same", async () => {
    let deaths = 0;
    for (const when of ["before", "after"] as const) {
      for (let call = 1; ; call += 1) {
        const machine = rig();
        const { host, kernel, state } = machine;
        const planned = await planReplace(machine.replacing, request);
        if (!planned.ok) throw new Error(planned.error.message);
        host.dieAt(call, when);
        const begun = beginReplace(machine.replacing, request, planned.value, { kind: "local" });
        if (begun.kind !== "begun") throw new Error("busy");
        await begun.finished;
        if (state.replacements.open() === undefined) break;
        deaths += 1;
        host.crash();
        kernel.show(host);
        await resumeReplace(asNext(machine));
        expectReplaced(machine);
      }
    }
    expect(deaths).toBeGreaterThan(50);
  });
});
