// budget: 3000 s
/** A mirrored system that never ran: each of its disks alone, by a BIOS and by UEFI. */
import { afterAll, describe, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testImage } from "../qemu/harness/image.ts";
import { installedPair } from "../qemu/harness/installed.ts";
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
