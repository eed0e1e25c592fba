import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BlockNode } from "../../disks/model.ts";
import { parseLsblk } from "../../disks/parse.ts";
import { chooseFile, parseListing, seedDevices, seedLabel } from "./select.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

/**
 * A live system from a CD, with a disc and a stick for it, and two disks of the machine; one has a seed's label. Of
 * optical discs udev on the image knows no label: whoever wants to know has to ask the disc.
 */
const captured = readFileSync(join(import.meta.dir, "testdata/lsblk-json-b-O-stick-disc-virtio.txt"), "utf8");
const tree = ((): readonly BlockNode[] => {
  const parsed = parseLsblk(captured);
  if (!parsed.ok) throw new Error("the captured output is read");
  return parsed.value;
})();

describe("the devices that may carry a seed", () => {
  const medium = ["/dev/sr0"];

  test("are removable ones: the second drive and the stick, not the medium of the live system itself", () => {
    const { candidates } = seedDevices(tree, medium);
    expect(candidates.map(({ path, label }) => [path, label])).toEqual([
      ["/dev/sdb", undefined],
      ["/dev/sdb1", "CORIUM"],
      ["/dev/sr1", undefined],
    ]);
    expect(candidates.every(({ isOnBootMedium }) => !isOnBootMedium)).toBe(true);
  });

  test("a disk of the machine that is labelled as a seed is named, not read", () => {
    expect(seedDevices(tree, medium).fixed).toEqual([{ path: "/dev/vda", label: "CIDATA" }]);
  });

  test("partitions of the stick that the live system runs from are among them, whatever the kernel calls it", () => {
    const fixed = tree.map((node) =>
      node.path === "/dev/sdb" ? { ...node, isRemovable: false, isHotplug: false, transport: "sata" } : node,
    );
    expect(seedDevices(fixed, ["/dev/sdb"]).candidates.filter(({ isOnBootMedium }) => isOnBootMedium)).toEqual([
      { path: "/dev/sdb1", label: "CORIUM", filesystem: "vfat", isOnBootMedium: true },
    ]);
  });

  test("the fingerprint tells a medium that was changed, and nothing else", () => {
    const of = (nodes: readonly BlockNode[]): string => seedDevices(nodes, medium).fingerprint;
    const change = (path: string, more: Partial<BlockNode>): readonly BlockNode[] =>
      tree.map((node) => (node.path === path ? { ...node, ...more } : node));
    expect(of(change("/dev/sr1", { sequence: "99" }))).not.toBe(of(tree));
    expect(of(tree.filter(({ path }) => path !== "/dev/sdb"))).not.toBe(of(tree));
    expect(of(change("/dev/vda", { sequence: "99" }))).toBe(of(tree));
  });
});

test("labels are read in either case, and nothing like them", () => {
  expect(["CIDATA", "cidata", "CORIUM", "corium"].map(seedLabel)).toEqual(["CIDATA", "CIDATA", "CORIUM", "CORIUM"]);
  expect(["CORIUM-ESP", "corium-state", "", undefined].map(seedLabel)).toEqual(Array(4).fill(undefined));
});

describe("the file on a seed", () => {
  const file = (name: string) => ({ type: "f", sizeBytes: 1, name });

  test.each([
    ["CORIUM", "config.yaml", ["CONFIG.YAML", "config.yaml"]],
    ["CORIUM", "CONFIG.YAML", ["CONFIG.YAML", "user-data"]],
    ["CIDATA", "user-data", ["USER_DATA", "meta-data", "user-data"]],
    ["CIDATA", "USER-DATA", ["USER-DATA"]],
    ["CIDATA", "user_data", ["user_data"]],
    ["CORIUM", undefined, ["user-data", "config.yml", "xconfig.yaml", "config.yaml~"]],
    ["CIDATA", undefined, ["config.yaml", "user-data.txt", "vendor-data"]],
  ] as const)("%s: %p of %p", (label, wanted, names) => {
    expect(chooseFile(label, names.map(file))?.name).toBe(wanted as string);
  });

  test("a listing is read whatever people call their files", () => {
    const name = fc.string({ minLength: 1 }).filter((text) => !/[\0/]/.test(text));
    const entry = fc.record({ type: fc.constantFrom("f", "d", "l"), sizeBytes: fc.nat(), name });
    fc.assert(
      fc.property(fc.array(entry), (entries) => {
        const printed = entries.map((each) => `${each.type} ${each.sizeBytes} ${each.name}\0`).join("");
        expect(parseListing(printed)).toEqual(entries);
      }),
    );
  });
});
