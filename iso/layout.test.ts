import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import {
  ALIGNMENT_BYTES,
  MINIMUM_DATA_BYTES,
  PARTITIONS,
  neededBytes,
  partitionOf,
  planLayout,
  sfdiskScript,
} from "./layout.ts";
import type { LayoutInput, PartitionRole } from "./layout.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const GIB = 1024 ** 3;

function input(over: Partial<LayoutInput> = {}): LayoutInput {
  const partUuids = Object.fromEntries(
    PARTITIONS.map(({ role, number }) => [role, `00000000-0000-4000-8000-00000000000${number}`]),
  ) as Record<PartitionRole, string>;
  const diskGuid = "11111111-2222-4333-8444-555555555555";
  return { diskSizeBytes: 20 * GIB, sectorBytes: 512, rootImageBytes: 300_000_001, diskGuid, partUuids, ...over };
}

describe("planLayout", () => {
  for (const sectorBytes of [512, 4096]) {
    test(`${sectorBytes}-byte sectors: partitions follow each other, aligned, inside the usable area`, () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 7, max: 4000 }),
          fc.integer({ min: 0, max: 2 ** 20 }),
          fc.integer({ min: 1, max: GIB / 2 }),
          (gib, extraSectors, rootImageBytes) => {
            const diskSizeBytes = gib * GIB + extraSectors * sectorBytes;
            const planned = planLayout(input({ diskSizeBytes, sectorBytes, rootImageBytes }));
            expect(planned.ok).toBe(true);
            if (!planned.ok) return;
            let end = ALIGNMENT_BYTES;
            for (const partition of planned.value.partitions) {
              expect(partition.startBytes).toBe(end);
              expect(partition.startBytes % ALIGNMENT_BYTES).toBe(0);
              expect(partition.sizeBytes % ALIGNMENT_BYTES).toBe(0);
              end = partition.startBytes + partition.sizeBytes;
            }
            expect(end).toBeLessThanOrEqual(diskSizeBytes - sectorBytes - 16_384);
            expect(partitionOf(planned.value, "data").sizeBytes).toBeGreaterThanOrEqual(
              MINIMUM_DATA_BYTES - ALIGNMENT_BYTES,
            );
            expect(partitionOf(planned.value, "rootA").sizeBytes).toBeGreaterThanOrEqual(2 * rootImageBytes);
          },
        ),
      );
    });
  }

  test.each([
    ["20 GB", 20_000_000_000, 512],
    ["2 TB", 2_000_398_934_016, 512],
    ["2 TB, 4Kn", 2_000_398_934_016, 4096],
  ])("B168: on a disk of %s the data partition takes all that is left", (_, diskSizeBytes, sectorBytes) => {
    const planned = planLayout(input({ diskSizeBytes, sectorBytes }));
    if (!planned.ok) throw new Error(planned.error.message);
    const { partitions } = planned.value;
    const data = partitionOf(planned.value, "data");
    expect(partitions.at(-1)).toEqual(data);
    expect(diskSizeBytes - (data.startBytes + data.sizeBytes)).toBeLessThanOrEqual(2 * ALIGNMENT_BYTES);
  });

  test("B169: what fills /var can't take the room of the node's own records", () => {
    const planned = planLayout(input());
    if (!planned.ok) throw new Error(planned.error.message);
    expect(partitionOf(planned.value, "state").sizeBytes).toBe(GIB);
    expect(partitionOf(planned.value, "state").number).not.toBe(partitionOf(planned.value, "data").number);
  });

  test("virtio disk of 4.3 GB as the only disk: refused with needed and found bytes", () => {
    const planned = planLayout(input({ diskSizeBytes: 4_300_000_000 }));
    expect(planned).toMatchObject({
      ok: false,
      error: {
        code: "disk-too-small",
        message: `the disk has 4300000000 bytes, ${neededBytes(300_000_001, 512)} are needed`,
      },
    });
  });

  test("a disk of exactly the needed size is taken, one byte less is not", () => {
    const needed = neededBytes(300_000_001, 4096);
    expect(planLayout(input({ sectorBytes: 4096, diskSizeBytes: needed })).ok).toBe(true);
    expect(planLayout(input({ sectorBytes: 4096, diskSizeBytes: needed - 1 })).ok).toBe(false);
  });

  test("other sectors are refused", () => {
    expect(planLayout(input({ sectorBytes: 520 }))).toMatchObject({ ok: false, error: { code: "sector-size" } });
  });
});

describe("sfdiskScript", () => {
  test("counts in the sectors of the disk", () => {
    const at = (sectorBytes: number): string => {
      const planned = planLayout(input({ sectorBytes }));
      if (!planned.ok) throw new Error(planned.error.message);
      return sfdiskScript(planned.value);
    };
    expect(at(512)).toContain("start=2048, size=2048, type=21686148");
    expect(at(4096)).toContain("start=256, size=256, type=21686148");
    expect(at(4096)).toContain("start=512, size=131072, type=c12a7328");
  });

  const sfdisk = Bun.which("sfdisk");
  test.skipIf(sfdisk === null)("sfdisk makes exactly this table [needs sfdisk]", () => {
    const folder = mkdtempSync(join(tmpdir(), "layout-"));
    try {
      const image = join(folder, "disk");
      writeFileSync(image, "");
      truncateSync(image, 20 * GIB);
      const partUuids = Object.fromEntries(PARTITIONS.map(({ role }) => [role, randomUUID()])) as Record<
        PartitionRole,
        string
      >;
      const planned = planLayout(input({ partUuids }));
      if (!planned.ok) throw new Error(planned.error.message);
      const made = Bun.spawnSync([sfdisk ?? "", "--no-tell-kernel", image], {
        stdin: Buffer.from(sfdiskScript(planned.value)),
      });
      expect(made.stderr.toString()).toBe("");
      const dump = JSON.parse(Bun.spawnSync([sfdisk ?? "", "--json", image]).stdout.toString()) as {
        partitiontable: {
          id: string;
          partitions: { start: number; size: number; uuid: string; name: string; type: string }[];
        };
      };
      expect(dump.partitiontable.id.toLowerCase()).toBe(planned.value.diskGuid);
      expect(
        dump.partitiontable.partitions.map(({ start, size, uuid, name, type }) => ({
          start: start * 512,
          size: size * 512,
          uuid: uuid.toLowerCase(),
          name,
          type: type.toLowerCase(),
        })),
      ).toEqual(
        planned.value.partitions.map(({ startBytes, sizeBytes, partUuid, name, typeGuid }) => ({
          start: startBytes,
          size: sizeBytes,
          uuid: partUuid,
          name,
          type: typeGuid,
        })),
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
