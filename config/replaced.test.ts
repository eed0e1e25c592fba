import { describe, expect, test } from "bun:test";
import { diffDocuments } from "../apply/classify.ts";
import type { ReplacedDisk } from "../kit/disk.ts";
import type { Document } from "./document.ts";
import { parseDocument } from "./load.ts";
import { standInFor } from "./replaced.ts";
import { deviceKey } from "./device.ts";

const swap = (old: string, next: string, named = old): ReplacedDisk => ({
  array: "data",
  device: deviceKey({ serial: named }),
  old: { serial: old, sizeBytes: 1 },
  new: { serial: next, sizeBytes: 1 },
  newLinks: [`/dev/disk/by-id/virtio-${next}`],
});

const serial = (named: string, replaced: readonly ReplacedDisk[]): string | undefined =>
  standInFor("data", { serial: named }, replaced)?.serial;

describe("what a reference means after disks were replaced", () => {
  test("once, twice, and by a document that was brought up to date between", () => {
    expect(serial("B", [])).toBeUndefined();
    expect(serial("B", [swap("B", "C")])).toBe("C");
    expect(serial("A", [swap("B", "C")])).toBeUndefined();
    expect(serial("B", [swap("B", "C"), swap("C", "D", "B")])).toBe("D");
    expect(serial("B", [swap("B", "C"), swap("C", "D", "C")])).toBe("D");
    expect(serial("C", [swap("B", "C"), swap("C", "D", "C")])).toBe("D");
    expect(standInFor("other", { serial: "B" }, [swap("B", "C")])).toBeUndefined();
  });

  test("the old disk may come back into the place that it had", () => {
    expect(serial("B", [swap("B", "C"), swap("C", "B", "B")])).toBe("B");
  });
});

describe("an apply after a disk was replaced", () => {
  const document = (device: string): Document => {
    const text = `role: single\ncluster: { name: demo }\nraid: [{ name: data, level: 1, devices: [{ serial: A }, ${device}] }]\n`;
    const parsed = parseDocument(text, { nowMs: 0 }).document;
    if (parsed === undefined) throw new Error(text);
    return parsed;
  };
  const result = (before: string, after: string, replaced: readonly ReplacedDisk[]): string =>
    diffDocuments(document(before), document(after), { fingerprintKey: "k", replaced }).result;

  test("of the same document, or of one that names the new disk, is unchanged", () => {
    const replaced = [swap("B", "C")];
    expect(result("{ serial: B }", "{ serial: B }", replaced)).toBe("unchanged");
    expect(result("{ serial: B }", "{ serial: C }", replaced)).toBe("unchanged");
    expect(result("{ serial: B }", "/dev/disk/by-id/virtio-C", replaced)).toBe("unchanged");
    expect(result("{ serial: B }", "{ serial: C }", [])).toBe("refused");
    // A document that was brought up to date before the disk was replaced once more.
    expect(result("{ serial: B }", "{ serial: C }", [swap("B", "C"), swap("C", "D", "B")])).toBe("unchanged");
  });

  test("any other disk is refused as before", () => {
    expect(result("{ serial: B }", "{ serial: X }", [swap("B", "C")])).toBe("refused");
    expect(result("{ serial: B }", "{ serial: A, model: x }", [swap("B", "C")])).toBe("refused");
  });
});
