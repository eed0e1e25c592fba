/** Encrypted volumes on an array of the document: what is planned for them; provision/volumes.test.ts carries it out. */
import { describe, expect, test } from "bun:test";
import type { LuksSpec } from "../config/document.ts";
import type { Disk, Inventory, MdArray, Signature } from "../kit/disk.ts";
import type { Intent } from "../state/model.ts";
import { countedUuids, machine, mirror, storageDocument } from "../test/machines/machines.ts";
import type { StorageInput, StoragePlan, StorageStep } from "./storage.ts";
import { planStorage } from "./storage.ts";

const plan = (inventory: Inventory, more: Pick<StorageInput, "document"> & Partial<StorageInput>): StoragePlan =>
  planStorage({ inventory, owned: [], intents: [], uuid: countedUuids(), ...more });
const ids = (result: StoragePlan): string[] => result.steps.map((step) => step.id);
const errors = (result: StoragePlan): string[] =>
  result.findings
    .filter((each) => each.severity === "error")
    .map((each) => `${each.code} ${each.path}: ${each.message}`);
const closed = (step: StorageStep): Intent => ({
  stepId: step.id,
  step,
  disks: step.destroys ?? [],
  openedAtMs: 1,
  closedAtMs: 2,
});

describe("a volume on an array", () => {
  const volume: LuksSpec = {
    name: "vault",
    device: "/dev/md/data",
    unlock: "passphrase",
    passphrase: "x",
    filesystem: "ext4",
    mountPoint: "/var/lib/k0s",
    wipe: false,
  };
  const bare = mirror({ filesystem: "none" });
  const { mountPoint: _, ...array } = bare;
  const document = storageDocument({ raid: [array], luks: [volume] });
  const steps = [
    "raid:data:create",
    "raid:data:config",
    "luks:vault:key",
    "luks:vault:format",
    "luks:vault:crypttab",
    "luks:vault:open",
    "luks:vault:filesystem",
    "mount:vault",
  ];

  test("comes after it, by its stable name, and k0s waits for the mount", () => {
    const result = plan(machine("blank-pair"), { document });
    expect(errors(result)).toEqual([]);
    expect(ids(result)).toEqual(steps);
    expect(result.steps[3]).toMatchObject({
      device: { path: "/dev/disk/by-id/md-uuid-00000000:00004000:80000000:00000001" },
      destroys: [{ serial: "A" }, { serial: "B" }],
    });
    expect(result.owned.map(({ kind, name }) => `${kind} ${name}`)).toEqual(["raid data", "luks vault"]);
  });

  /** As if the first `count` steps ran, and the machine shows what they left. */
  function after(count: number, inside?: { readonly uuid: string; readonly type: string }): StoragePlan {
    const first = plan(machine("blank-pair"), { document });
    const done = first.steps.slice(0, count).filter((step) => (step.destroys ?? []).length > 0);
    const create = first.steps[0];
    if (create?.kind !== "raid:create") throw new Error("no array is made");
    const pair = machine("blank-pair");
    const members = pair.disks
      .filter(({ identity }) => identity.serial === "A" || identity.serial === "B")
      .map(({ path }) => path);
    const found: MdArray = {
      uuid: create.uuid,
      name: "data",
      level: "raid1",
      memberPaths: members,
      expectedMembers: 2,
      ...(inside === undefined ? {} : { filesystemUuid: inside.uuid, filesystemType: inside.type }),
    };
    return plan({ ...pair, arrays: [found] }, { document, intents: done.map(closed) });
  }

  test("the array is there, the volume is not yet; whatever shows through from before is formatted over", () => {
    for (const inside of [undefined, { uuid: "old", type: "ext4" }, { uuid: "old", type: "crypto_LUKS" }]) {
      const result = after(2, inside);
      expect(errors(result)).toEqual([]);
      expect(ids(result)).toEqual(["raid:data:assemble", ...steps.slice(1)]);
    }
  });

  test("both are there: opened, not made; another header in the array is an error", () => {
    const format = plan(machine("blank-pair"), { document }).steps[3];
    const uuid = format?.kind === "luks:format" ? format.uuid : "";
    const result = after(8, { uuid, type: "crypto_LUKS" });
    expect(errors(result)).toEqual([]);
    expect(ids(result)).toEqual([
      "raid:data:assemble",
      ...steps.slice(1).filter((id) => !/:(?:format|filesystem)$/.test(id)),
    ]);
    expect(errors(after(8, { uuid: "other", type: "crypto_LUKS" }))).toEqual([
      `own-incomplete luks[0].device: volume vault (${uuid}) is this node's, but its header is not on array data`,
    ]);
  });

  test("installed again: the array was wiped with the volume in it, because wipe: true stood in the document", () => {
    const pair = machine("blank-pair");
    const isMember = ({ identity }: Disk): boolean => identity.serial === "A" || identity.serial === "B";
    const uuid = "557c5b94:881be2de:bc5f369b:49d8761f";
    const signature = (device: string): Signature => ({
      type: "linux_raid_member",
      device,
      where: "the whole disk at 0x1000",
      uuid: "557c5b94-881b-e2de-bc5f-369b49d8761f",
    });
    const disks = pair.disks.map((disk) => (isMember(disk) ? { ...disk, signatures: [signature(disk.path)] } : disk));
    const found: MdArray = {
      uuid,
      name: "data",
      level: "raid1",
      memberPaths: disks.filter(isMember).map(({ path }) => path),
      expectedMembers: 2,
      filesystemUuid: "f",
      filesystemType: "crypto_LUKS",
      label: "corium-vault",
    };
    const again = (wipe: boolean, more: Partial<MdArray> = {}, ownLossSinceMs?: number): StoragePlan =>
      plan(
        { ...pair, disks, arrays: [{ ...found, ...more }] },
        {
          document: storageDocument({ raid: [{ ...array, wipe }], luks: [{ ...volume, wipe }] }),
          ...(ownLossSinceMs === undefined ? {} : { ownLossSinceMs }),
        },
      );
    expect(errors(again(true))).toEqual([
      `own-data raid[0].devices: array data (${uuid}) holds volume vault of an earlier installation, which is not taken over: it can't be opened before the array runs`,
    ]);
    expect(ids(again(true))).toEqual([]);
    expect(errors(again(false)).map((each) => each.slice(0, 10))).toEqual(["holds-data", "holds-data"]);
    // Somebody else's goes with consent, and so does one's own with the flag for it.
    expect(ids(again(true, { label: "photos" })).slice(0, 2)).toEqual(["raid:data:wipe:0", "raid:data:wipe:1"]);
    expect(ids(again(true, { name: "theirs" })).slice(0, 2)).toEqual(["raid:data:wipe:0", "raid:data:wipe:1"]);
    expect(ids(again(true, {}, 5)).slice(0, 2)).toEqual(["raid:data:wipe:0", "raid:data:wipe:1"]);
  });
});
