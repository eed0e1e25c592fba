import { describe, expect, test } from "bun:test";
import type { OwnedStorage } from "../../kit/disk.ts";
import { machine } from "../../test/machines/machines.ts";
import type { Standing } from "./model.ts";
import { mountPoints, pointsToFree, readMountUnit } from "./mounts.ts";
import type { ResetInput } from "./plan.ts";
import { planReset } from "./plan.ts";
import { ownMember, parseMembers } from "../../k0s/cluster/members.ts";
import { mayLeave, quorumOf } from "./standing.ts";

const inventory = machine("blank-pair");
const identityOf = (serial: string) => {
  const found = inventory.disks.find(({ identity }) => identity.serial === serial);
  if (found === undefined) throw new Error(serial);
  return found.identity;
};
const data: OwnedStorage = { kind: "raid", name: "data", uuid: "a", disks: [identityOf("A"), identityOf("B")] };
const vault: OwnedStorage = { ...data, kind: "luks", name: "vault", uuid: "v" };

const input = (more: Partial<ResetInput> = {}): ResetInput => ({
  hostname: "node1",
  standing: { kind: "last" },
  isWipingDisks: false,
  owned: [data],
  inventory,
  mounts: [],
  passphraseVolumes: [],
  ...more,
});
const ids = (more: Partial<ResetInput>): readonly string[] => planReset(input(more)).erase.map(({ id }) => id);
const member = (...reachable: readonly boolean[]): Standing => ({
  kind: "member",
  member: "node1",
  others: reachable.map((isReachable, at) => ({ name: `node${at + 2}`, isReachable })),
});

describe("the plan of a reset", () => {
  test("k0s is stopped and everything is unmounted before k0s reset; the records go last", () => {
    expect(ids({})).toEqual(["reset:stop", "reset:unmount", "reset:k0s", "reset:files", "reset:state"]);
    expect(ids({ isWipingDisks: true, owned: [data, vault] })).toEqual([
      "reset:stop",
      "reset:unmount",
      "reset:k0s",
      // A volume on an array before the array.
      "reset:scrub:luks:vault",
      "reset:scrub:raid:data",
      "reset:wipe:A",
      "reset:wipe:B",
      "reset:files",
      "reset:state",
    ]);
  });

  test("kept disks are in no step, and the system's own disk is in none whatever a record says", () => {
    const kept = planReset(input());
    expect(kept.erase.flatMap((step) => step.destroys ?? [])).toEqual([]);
    expect(kept.kept.join("\n")).toContain("array data on ");
    const mad: OwnedStorage = { kind: "disk", name: "mad", uuid: "m", disks: [identityOf("SYSTEM")] };
    expect(ids({ isWipingDisks: true, owned: [mad] }).filter((id) => id.startsWith("reset:wipe"))).toEqual([]);
  });

  test("a disk that was pulled is said, not searched for", () => {
    const gone: OwnedStorage = { kind: "disk", name: "old", uuid: "o", disks: [{ serial: "GONE", sizeBytes: 5 }] };
    const { left, erase } = planReset(input({ isWipingDisks: true, owned: [gone] }));
    expect(left.join("\n")).toMatch(/serial GONE.*which is not here: disk old/);
    expect(erase.flatMap((step) => step.destroys ?? [])).toEqual([]);
  });

  test("k0s's own data on a kept disk are said, for the next node would start with them", () => {
    const mounts = [{ unit: "var-lib-k0s.mount", point: "/var/lib/k0s" }];
    expect(planReset(input({ mounts })).kept.join("\n")).toContain("the data of k0s itself");
    expect(planReset(input({ mounts, isWipingDisks: true })).kept.join("\n")).not.toContain("the data of k0s itself");
  });

  test("B133: what is skipped is named with the reason", () => {
    const skipped = (standing: Standing) => planReset(input({ standing, role: "controller" })).skipped.join("\n");
    expect(skipped({ kind: "last" })).toContain("no other node");
    expect(skipped({ kind: "worker" })).toContain("kubectl drain node1");
    expect(skipped({ kind: "silent", reason: "etcd is away" })).toContain("etcd is away");
    expect(planReset(input({ standing: { kind: "worker" } })).left.join("\n")).toContain("kubectl delete node node1");
  });

  test("a member drains and leaves; without a kubelet there is no Node to drain or delete", () => {
    const both = planReset(input({ role: "controller+worker", standing: member(true, true) })).leave;
    expect(both.map(({ id }) => id)).toEqual(["reset:drain", "reset:leave"]);
    expect(both[1]).toMatchObject({ member: "node1", node: "node1" });
    const [only, ...more] = planReset(input({ role: "controller", standing: member(true, true) })).leave;
    expect([only?.id, more]).toEqual(["reset:leave", []]);
    expect(only).not.toHaveProperty("node");
  });
});

describe("who may leave", () => {
  test("never the last controller, nor one that takes the quorum with it, unless the cluster may end", () => {
    const verdicts: readonly (readonly [Standing, string | undefined])[] = [
      [{ kind: "none" }, undefined],
      [{ kind: "worker" }, undefined],
      [{ kind: "gone" }, undefined],
      [{ kind: "last" }, "last-controller"],
      [{ kind: "silent", reason: "no answer" }, "quorum"],
      [member(true), undefined],
      [member(false), "quorum"],
      [member(true, true), undefined],
      // Two that stay need each other.
      [member(true, false), "quorum"],
      [member(true, true, false, true), undefined],
      [member(true, true, false, false), "quorum"],
    ];
    for (const [standing, code] of verdicts) {
      const verdict = mayLeave(standing, false);
      expect([standing, verdict.ok ? undefined : verdict.error.code]).toEqual([standing, code]);
      expect(mayLeave(standing, true).ok).toBe(true);
    }
    expect([1, 2, 3, 4, 5].map(quorumOf)).toEqual([1, 2, 2, 3, 3]);
  });

  test("the own member is found by its peer address, for its name need not be the node's", () => {
    const members =
      parseMembers('{"members":{"a":"https://192.0.2.1:2380","node1":"https://[2001:db8::1]:2380"}}') ?? [];
    expect(ownMember(members, { hostname: "node1", peerAddress: "192.0.2.1" })?.name).toBe("a");
    expect(ownMember(members, { hostname: "x", peerAddress: "2001:db8::1" })?.name).toBe("node1");
    expect(ownMember(members, { hostname: "node1" })?.name).toBe("node1");
    expect(ownMember(members, { hostname: "x" })).toBeUndefined();
    for (const text of ["", "[]", '{"members":[]}', '{"members":{}}', "Error: no"])
      expect(parseMembers(text)).toBeUndefined();
  });
});

describe("what is unmounted", () => {
  const mounts = [
    "/dev/vda8 /var ext4 rw 0 0",
    "/dev/md127 /srv/data ext4 rw 0 0",
    "overlay /run/k0s/containerd/a/rootfs overlay rw 0 0",
    "tmpfs /var/lib/k0s/kubelet/pods/p/volumes/secret tmpfs rw 0 0",
    "/dev/md127 /var/lib/k0s/kubelet/pods/p/volumes/with\\040blank ext4 rw 0 0",
    "/dev/vdc /srv/data/more ext4 rw 0 0",
    "/dev/vdd /srv/database ext4 rw 0 0",
    "",
  ].join("\n");

  test("the latest first: all below k0s's folders and the document's points, and nothing beside them", () => {
    expect(pointsToFree(mounts, [{ unit: "srv-data.mount", point: "/srv/data" }])).toEqual([
      "/srv/data/more",
      "/var/lib/k0s/kubelet/pods/p/volumes/with blank",
      "/var/lib/k0s/kubelet/pods/p/volumes/secret",
      "/run/k0s/containerd/a/rootfs",
      "/srv/data",
    ]);
    expect(mountPoints(mounts)).toHaveLength(7);
  });

  test("units are read for where they mount; a masked one mounts nowhere", () => {
    expect(readMountUnit("srv-data.mount", "[Mount]\nWhat=/dev/x\nWhere=/srv/data\n")?.point).toBe("/srv/data");
    expect(readMountUnit("srv-data.mount", "")).toBeUndefined();
    expect(readMountUnit("k0s.service", "Where=/srv/data\n")).toBeUndefined();
  });
});
