/** A document that was changed between two runs of one bootstrap, and a consent to lose what the first run made. */
import { describe, expect, test } from "bun:test";
import type { LuksSpec } from "../config/document.ts";
import type { Inventory } from "../kit/disk.ts";
import type { Intent } from "../state/model.ts";
import { afterStep } from "../test/machines/after.ts";
import type { StorageDocument } from "../test/machines/generated.ts";
import { freshUuids } from "../test/machines/cases.ts";
import { countedUuids, machine, mirror, plainDisk, storageDocument } from "../test/machines/machines.ts";
import type { StoragePlan, StorageStep } from "./storage.ts";
import { planStorage } from "./storage.ts";

const vault = (more: Partial<LuksSpec> = {}): LuksSpec => ({
  name: "vault",
  device: { serial: "A" },
  unlock: "passphrase",
  passphrase: "correct horse",
  filesystem: "ext4",
  mountPoint: "/srv/vault",
  wipe: false,
  ...more,
});
const bareMirror = (more: Parameters<typeof mirror>[0] = {}) => {
  const { mountPoint: _, ...bare } = mirror({ filesystem: "none", ...more });
  return bare;
};

/** What steps that ran left on the disks and in the journal. */
class Node {
  inventory: Inventory = machine("blank-pair");
  readonly intents = new Map<string, Intent>();
  owned: StoragePlan["owned"] = [];
  atMs = 1;

  plan(document: StorageDocument, ownLossSinceMs?: number): StoragePlan {
    return planStorage({
      document,
      inventory: this.inventory,
      owned: this.owned,
      intents: [...this.intents.values()],
      uuid: this.intents.size === 0 ? countedUuids() : freshUuids(String(this.atMs).repeat(8)),
      ...(ownLossSinceMs === undefined ? {} : { ownLossSinceMs }),
    });
  }

  run(step: StorageStep, isWhole = true): void {
    this.inventory = afterStep(this.inventory, step, isWhole);
    const { id, destroys = [] } = step;
    if (destroys.length === 0) return;
    const open = { stepId: id, step, disks: destroys, openedAtMs: this.atMs };
    this.intents.set(id, isWhole ? { ...open, closedAtMs: this.atMs } : open);
  }
}

const complaints = ({ findings }: StoragePlan): string[] =>
  findings.filter((each) => each.severity === "error").map((each) => `${each.code} ${each.path}: ${each.message}`);

const ARRAY = "array data (00000000:00004000:80000000:00000001) is this node's and";

describe("the document was changed after a first run had made its storage", () => {
  const cases: readonly (readonly [
    what: string,
    first: Parameters<typeof storageDocument>[0],
    then: Parameters<typeof storageDocument>[0],
    refusal: string,
  ])[] = [
    [
      "a mirror was running where RAID 0 was asked for",
      { raid: [mirror()] },
      { raid: [mirror({ level: 0 })] },
      `own-differs raid[0].level: ${ARRAY} was made as raid1, not raid0`,
    ],
    [
      "RAID 0 was running where a mirror was asked for: a disk that dies takes everything along",
      { raid: [mirror({ level: 0 })] },
      { raid: [mirror()] },
      `own-differs raid[0].level: ${ARRAY} was made as raid0, not raid1`,
    ],
    [
      "an array with ext4 was to be mounted as xfs, and never was",
      { raid: [mirror()] },
      { raid: [mirror({ filesystem: "xfs" })] },
      `own-differs raid[0].filesystem: ${ARRAY} holds the ext4 that was made in it, not xfs`,
    ],
    [
      "an array that shall be bare kept its filesystem",
      { raid: [mirror()] },
      { raid: [bareMirror()] },
      `own-differs raid[0].filesystem: ${ARRAY} holds the ext4 that was made in it, not none`,
    ],
    [
      "a disk with ext4 was to be mounted as xfs, and never was",
      { disks: [plainDisk()] },
      { disks: [plainDisk({ filesystem: "xfs" })] },
      "own-differs disks[0].filesystem: disk /dev/vdb (no model, serial A, 512 MiB) is this node's and holds the ext4 that was made in it, not xfs",
    ],
    [
      "a volume with ext4 was to be mounted as xfs, and never was",
      { luks: [vault()] },
      { luks: [vault({ filesystem: "xfs" })] },
      "own-differs luks[0].filesystem: volume vault (00000000-0000-4000-8000-000000000001) is this node's and holds the ext4 that was made in it, not xfs",
    ],
  ];
  for (const [what, first, then, refusal] of cases) {
    test(what, () => {
      const node = new Node();
      const made = node.plan(storageDocument(first));
      for (const step of made.steps) node.run(step);
      expect(complaints(node.plan(storageDocument(then)))).toEqual([refusal]);
      // The same where only the record is left.
      if (first.luks === undefined) {
        const recorded = new Node();
        recorded.inventory = node.inventory;
        recorded.owned = made.owned;
        expect(complaints(recorded.plan(storageDocument(then)))).toEqual([refusal]);
      }
      expect(complaints(node.plan(storageDocument(first)))).toEqual([]);
    });
  }

  test("--wipe-own was given, and the cure was to give --wipe-own: the document had no wipe: true", () => {
    const node = new Node();
    for (const step of node.plan(storageDocument({ disks: [plainDisk()] })).steps) node.run(step);
    const { findings } = node.plan(storageDocument({ disks: [plainDisk({ name: "other" })] }), 5);
    expect(findings.find(({ code }) => code === "own-data")?.hint).toBe(
      "only wipe: true together with --wipe-own destroys it; or name another disk",
    );
  });

  test("a member became a spare, and the array went on with it as a member", () => {
    const node = new Node();
    const third = { ...node.inventory.disks[1], path: "/dev/vdd", links: [], identity: { serial: "C", sizeBytes: 1 } };
    node.inventory = { ...node.inventory, disks: [...node.inventory.disks, third as Inventory["disks"][number]] };
    const three = mirror({ devices: [{ serial: "A" }, { serial: "B" }, { serial: "C" }] });
    for (const step of node.plan(storageDocument({ raid: [three] })).steps) node.run(step);
    const [first, second, spare] = three.devices;
    if (first === undefined || second === undefined || spare === undefined) throw new Error("three devices");
    const split = { ...three, devices: [first, second], spares: [spare] };
    expect(complaints(node.plan(storageDocument({ raid: [split] })))).toEqual([
      `own-differs raid[0].devices: ${ARRAY} was made of 3 members and 0 spares, not of 2 and 1`,
    ]);
  });

  test("a volume that the TPM opens was refused its passphrase as a wrong one", () => {
    const node = new Node();
    for (const step of node.plan(storageDocument({ luks: [vault()] })).steps) node.run(step);
    const tpm = { versionMajor: 2, isEfi: true, isSecureBoot: true, isAcknowledged: false } as const;
    const then = planStorage({
      document: storageDocument({ luks: [vault({ unlock: "tpm2" })] }),
      inventory: node.inventory,
      owned: [],
      intents: [...node.intents.values()],
      uuid: countedUuids(),
      volumes: { tpm, probed: new Map() },
    });
    expect(complaints(then)).toEqual([
      "own-differs luks[0].unlock: volume vault (00000000-0000-4000-8000-000000000001) is this node's and was made to be opened by passphrase, not tpm2",
    ]);
  });

  test("power cut mdadm --create short and the level was corrected: the array was started at the old level", () => {
    const node = new Node();
    const [create] = node.plan(storageDocument({ raid: [mirror({ level: 0 })] })).steps;
    if (create === undefined) throw new Error("nothing was planned");
    node.run(create, false);
    expect(complaints(node.plan(storageDocument({ raid: [mirror()] })))).toEqual([
      `own-differs raid[0].level: ${ARRAY} was made as raid0, not raid1`,
    ]);
    // With the consent to lose it, it is made anew; and before mdadm has written anything nothing is in the way.
    const lost = node.plan(storageDocument({ raid: [mirror({ wipe: true })] }), 1);
    expect(lost.steps.map(({ id }) => id).slice(0, 2)).toEqual(["raid:data:wipe:0", "raid:data:create"]);
    const early = new Node();
    early.intents.set(create.id, { stepId: create.id, step: create, disks: create.destroys ?? [], openedAtMs: 1 });
    expect(early.plan(storageDocument({ raid: [mirror()] })).steps[0]).toMatchObject({ id: create.id, level: 1 });
  });

  test("power cut mkfs.ext4 short and the document says xfs since: our own ruin was taken for somebody's data", () => {
    const node = new Node();
    const [mkfs] = node.plan(storageDocument({ disks: [plainDisk()] })).steps;
    if (mkfs === undefined) throw new Error("nothing was planned");
    node.run(mkfs, false);
    const then = node.plan(storageDocument({ disks: [plainDisk({ filesystem: "xfs" })] }));
    expect(complaints(then)).toEqual([]);
    expect(then.steps[0]).toMatchObject({ id: mkfs.id, filesystem: "xfs", uuid: (mkfs as { uuid?: string }).uuid });
  });
});

describe("power was lost while what was ours was made anew under --wipe-own", () => {
  const documents: Readonly<Record<string, StorageDocument>> = {
    "an array": storageDocument({ raid: [mirror({ wipe: true })] }),
    "a disk": storageDocument({ disks: [plainDisk({ wipe: true })] }),
    "a volume": storageDocument({ luks: [vault({ wipe: true })] }),
    "a volume on an array": storageDocument({
      raid: [bareMirror({ wipe: true })],
      luks: [vault({ device: "/dev/md/data", wipe: true })],
    }),
    "a volume on an array, where only the array says wipe": storageDocument({
      raid: [bareMirror({ wipe: true })],
      luks: [vault({ device: "/dev/md/data" })],
    }),
  };
  for (const [what, document] of Object.entries(documents)) {
    test(`${what}: the node waited for the filesystem that was gone, and none was made`, () => {
      const cuts = after(document).plan(document, 5).steps.length;
      expect(cuts).toBeGreaterThan(2);
      for (let at = 0; at <= 2 * cuts; at += 1) {
        // Between two steps, or in the middle of one.
        const cut = Math.floor(at / 2);
        const node = after(document);
        const old = [...node.intents.values()].map(({ step }) => (step as { uuid?: string }).uuid);
        node.atMs = 6;
        const again = node.plan(document, 5).steps;
        for (const step of again.slice(0, cut)) node.run(step);
        const half = at % 2 === 0 ? undefined : again[cut];
        if (half !== undefined) node.run(half, false);
        node.atMs = 7;
        const then = node.plan(document, 5);
        expect({ at, said: complaints(then) }).toEqual({ at, said: [] });
        const made = then.steps.filter(({ kind }) => kind === "disk:filesystem");
        const mounts = then.steps.flatMap((step) => (step.kind === "disk:mount" ? [step.uuid] : []));
        expect(mounts).toHaveLength(1);
        expect({ at, isOld: old.includes(mounts[0]) }).toEqual({ at, isOld: false });
        // What was made since is not made twice.
        const isThere = [...node.intents.values()].some(
          ({ step, openedAtMs, closedAtMs }) => openedAtMs === 6 && closedAtMs === 6 && step.kind === "disk:filesystem",
        );
        expect({ at, made: made.length }).toEqual({ at, made: isThere ? 0 : 1 });
      }
    });
  }

  function after(document: StorageDocument): Node {
    const node = new Node();
    const { steps, owned } = node.plan(document);
    for (const step of steps) node.run(step);
    node.owned = owned;
    return node;
  }
});
