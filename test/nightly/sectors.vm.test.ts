// budget: 2400 s
/** A system on disks with sectors of 4096 bytes (NVMe): two of them, and each alone. Only UEFI starts from such disks. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRaw } from "../qemu/harness/disk.ts";
import { liveBoot, testImage } from "../qemu/harness/image.ts";
import { withVm } from "../qemu/harness/vm.ts";

const BOOT_MS = 900_000;
const image = await testImage();
const directory = mkdtempSync(join(tmpdir(), "corium-sectors-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const large = (serial: string) =>
  ({ serial, path: createRaw(join(directory, `${serial}.raw`), 6144), bus: "nvme", sectorBytes: 4096 }) as const;
const [first, second] = [large("first"), large("second")];
const document = `api: { enabled: true, awaitConfig: true }
install: { disk: { serial: first }, mirror: { serial: second } }
`;

describe("disks with sectors of 4096 bytes", () => {
  test(
    "a machine that a BIOS has started is not installed onto them, and is told the cure",
    async () => {
      const live = { name: "sectors-bios", memoryMiB: 1536, disks: [first, second], ...liveBoot(image, { document }) };
      await withVm(live, async (vm) => {
        await vm.console.expect(/has sectors of 4096 bytes, and a BIOS, which has started this machine/, BOOT_MS);
        await vm.console.expect(/set the firmware to UEFI/, BOOT_MS);
        expect([await vm.writeCount("first"), await vm.writeCount("second")]).toEqual([0, 0]);
      });
    },
    BOOT_MS,
  );

  test(
    "started by UEFI it is, onto both",
    async () => {
      const live = {
        name: "sectors-install",
        firmware: "ovmf",
        memoryMiB: 1536,
        disks: [first, second],
        isRebootExit: true,
        ...liveBoot(image, { document }),
      } as const;
      await withVm(live, async (vm) => {
        await vm.console.expect(/reboot: Restarting system/, BOOT_MS);
        await vm.waitExit(60_000);
      });
    },
    2 * BOOT_MS,
  );

  for (const [name, disks, state] of [
    ["both", [{ ...first, bootIndex: 0 }, second], "healthy 2/2"],
    ["the second alone", [{ ...second, bootIndex: 0 }], "degraded 1/2"],
  ] as const) {
    test(
      `it starts from ${name}`,
      async () => {
        const machine = { name: "sectors", firmware: "ovmf", memoryMiB: 1024, disks } as const;
        await withVm(machine, async (vm) => {
          await vm.console.expect(/claim code: /, BOOT_MS);
          await vm.console.expect(new RegExp(`array: system raid1 ${state}`), BOOT_MS);
          await vm.shell.waitReady(BOOT_MS);
          expect(await vm.shell.must("lsblk -dno LOG-SEC $(findmnt -no SOURCE /var/lib/corium)")).toContain("4096");
          expect(await vm.shell.must("systemctl --failed --no-legend --plain")).toBe("");
          await vm.kill();
        });
      },
      2 * BOOT_MS,
    );
  }
});
