// budget: 4500 s
/** A mirrored system: each of its disks alone, by a BIOS and by UEFI; and a third disk in the place of one that is gone. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRaw } from "../qemu/harness/disk.ts";
import { testImage } from "../qemu/harness/image.ts";
import { installedPair } from "../qemu/harness/installed.ts";
import { openOperator } from "../qemu/harness/node.ts";
import { withVm } from "../qemu/harness/vm.ts";

const image = await testImage();
const directory = mkdtempSync(join(tmpdir(), "corium-mirror-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const BOOT_MS = 500_000;

describe("B033: the very first start of a mirrored system", () => {
  for (const firmware of ["bios", "ovmf"] as const) {
    for (const [at, gone] of ["second", "first"].entries()) {
      test(
        `by ${firmware} with its ${gone} disk gone reaches a claimable console that says so`,
        async () => {
          const name = `mirror-${firmware}-without-${gone}`;
          const disk = (await installedPair(image, join(directory, name)))[at === 0 ? 0 : 1];
          await withVm({ name, firmware, memoryMiB: 1024, disks: [disk], shell: false }, async (vm) => {
            await vm.console.expect(/claim code: /, BOOT_MS);
            await vm.console.expect(/array: system raid1 degraded 1\/2/, BOOT_MS);
          });
        },
        3 * BOOT_MS,
      );
    }
  }
});

describe("a disk of the mirrored system is replaced", () => {
  test(
    "by a blank one, which then starts the machine alone",
    async () => {
      const operator = await openOperator();
      const [first] = await installedPair(image, join(directory, "replace"));
      const third = { serial: "third", path: createRaw(join(directory, "third.raw"), 6144) };
      const replace = (old: string): readonly string[] => {
        return ["disk", "replace", "node1", "system", "--old", old, "--new", "third", "--yes"];
      };
      try {
        const both = { name: "mirror-replace", memoryMiB: 1536, cpus: 2, disks: [first, third], forwards: [7443] };
        await withVm(both, async (vm) => {
          await operator.enroll(vm, "node1", BOOT_MS);
          await vm.console.expect(/array: system raid1 degraded 1\/2/, BOOT_MS);
          const refused = await operator.cctl(replace("first"), 120_000);
          expect([refused.exitCode, refused.stdout]).toEqual([1, ""]);
          expect(refused.stderr).toContain("alone has the whole system");
          expect(await vm.writeCount("third")).toBe(0);
          await operator.must(replace("second"), 1_500_000);
          await vm.console.expect(/array: system raid1 healthy 2\/2/, BOOT_MS);
          await vm.shell.waitReady(BOOT_MS);
          await vm.shell.must("echo kept >/var/lib/corium/mark && sync");
          const events = await operator.must(["events", "node1"]);
          expect(events).toMatch(/array system: \S+.*serial third.* took the place of second/);
          await vm.kill();
        });
        const alone = { name: "mirror-third", memoryMiB: 1024, disks: [{ ...third, bootIndex: 0 }] };
        await withVm(alone, async (vm) => {
          await vm.console.expect(/array: system raid1 degraded 1\/2/, BOOT_MS);
          await vm.shell.waitReady(BOOT_MS);
          expect(await vm.shell.must("cat /var/lib/corium/mark")).toBe("kept");
          expect(await vm.shell.must("systemctl --failed --no-legend --plain")).toBe("");
        });
      } finally {
        operator.dispose();
      }
    },
    5 * BOOT_MS,
  );
});
