/**
 * What both planners make of each recorded machine, compared with a page in expected/. `CORIUM_GOLDEN=write bun test
 * test/machines` writes the pages anew; read the difference before it is committed.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resolveDevice } from "../../disks/select.ts";
import { claim, install, judgedPage, selectorsFor } from "./judged.ts";
import { machine, machineNames, recordedMachine } from "./machines.ts";

const expected = join(import.meta.dir, "expected");

describe("what is refused and what is usable, machine by machine", () => {
  for (const name of machineNames) {
    test(name, () => {
      const page = judgedPage(recordedMachine(name).about, machine(name));
      const file = join(expected, `${name}.txt`);
      if (process.env["CORIUM_GOLDEN"] === "write") writeFileSync(file, page);
      expect(page).toBe(existsSync(file) ? readFileSync(file, "utf8") : "");
    });
  }

  test("no page is of a machine that is gone", () => {
    expect(readdirSync(expected).toSorted()).toEqual(machineNames.map((name) => `${name}.txt`).toSorted());
  });
});

describe("on every machine", () => {
  test("a selector that does not fit exactly one disk lists each disk, with its exact bytes and why", () => {
    let listed = 0;
    for (const name of machineNames) {
      const inventory = machine(name);
      for (const selector of selectorsFor(inventory)) {
        const found = resolveDevice(selector, inventory);
        if (found.ok) continue;
        listed += 1;
        expect(["disk-ambiguous", "disk-not-found"]).toContain(found.error.code);
        const details = found.error.details ?? [];
        expect(details.length).toBe(inventory.disks.length);
        for (const [at, { path, sizeBytes }] of inventory.disks.entries()) {
          expect(details[at]).toStartWith(`${path} (`);
          expect(details[at]).toContain(`, ${sizeBytes} bytes: `);
        }
        const matching = details.filter((line) => line.endsWith(": matches")).length;
        expect(matching === 0 ? "disk-not-found" : "disk-ambiguous").toBe(found.error.code);
        expect(matching).not.toBe(1);
      }
    }
    expect(listed).toBeGreaterThan(10);
  });

  test("medium, system disk and what is in use are refused by both planners, whatever wipe says", () => {
    let refused = 0;
    for (const name of machineNames) {
      const inventory = machine(name);
      for (const disk of inventory.disks) {
        if (!disk.isBootMedium && !disk.isSystemDisk && !disk.users.some((user) => user.isBusy)) continue;
        for (const plan of [claim, install]) {
          const { steps, findings } = plan(inventory, disk.path, true);
          expect(steps).toEqual([]);
          expect(findings.some(({ severity }) => severity === "error")).toBe(true);
          refused += 1;
        }
      }
    }
    expect(refused).toBeGreaterThan(20);
  });

  test("what holds data is never planned for without consent", () => {
    for (const name of machineNames) {
      const inventory = machine(name);
      for (const disk of inventory.disks.filter((each) => each.signatures.length + each.partitions.length > 0)) {
        // Begun by an installation that gave its consent.
        const isHalfMade = disk.partitions.some((partition) => partition.label === "corium-installing");
        for (const plan of isHalfMade ? [claim] : [claim, install])
          expect([name, disk.path, plan(inventory, disk.path, false).steps]).toEqual([name, disk.path, []]);
      }
    }
  });
});
