// budget: 1500 s
/** How a machine boots the disk that it installed itself to: trial, fall-back, and with the medium still in. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDisk } from "../../iso/build/disk.ts";
import type { BootEnv } from "../../iso/bootenv.ts";
import { imageFacts, testImage } from "./harness/image.ts";
import type { DiskOptions } from "./harness/options.ts";
import { withVm, type Vm } from "./harness/vm.ts";

const image = await testImage();
const facts = imageFacts(image);
const directory = mkdtempSync(join(tmpdir(), "corium-disk-boot-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const INSTALLATION = "0123456789abcdef0123456789abcdef";
const OTHER = "fedcba9876543210fedcba9876543210";
const WRONG_HASH = "00".repeat(32);
/** Four times what it takes alone under TCG. */
const BOOT_MS = 500_000;

const bootFacts = async (vm: Vm): Promise<unknown> => JSON.parse(await vm.shell.must("cat /run/corium/boot.json"));

/** A disk as the installer leaves it, made offline. */
function installedDisk(
  name: string,
  more: {
    readonly installation?: string;
    readonly slotB?: { readonly rootHash: string };
    readonly environment?: (fresh: BootEnv) => BootEnv;
  } = {},
): string {
  const disk = join(directory, `${name}.raw`);
  const boot = (file: string): string => join(facts.bootFiles, file);
  makeDisk(disk, {
    files: {
      vmlinuz: join(image.pxe, "vmlinuz"),
      initrd: join(image.pxe, "initrd"),
      root: join(image.pxe, "root.squashfs"),
      "boot.img": boot("boot.img"),
      "core.img": boot("core.img"),
      "shimx64.efi": boot("shimx64.efi"),
      "grubx64.efi": boot("grubx64.efi"),
      "mmx64.efi": boot("mmx64.efi"),
    },
    rootHash: facts.rootHash,
    hashOffsetBytes: facts.hashOffsetBytes,
    version: facts.version,
    args: "hostname=from-slot",
    sizeBytes: 6 * 1024 ** 3,
    installation: INSTALLATION,
    work: join(directory, "work"),
    ...more,
  });
  return disk;
}

describe("the installed disk", () => {
  /** Before it nothing is typed on ttyS1: it would go to firmware and GRUB, which read every serial port. */
  const consoleOf = (vm: Vm, slot: string): Promise<unknown> =>
    vm.console.expect(new RegExp(`phase: [a-z -]+\\(slot ${slot}\\)`), BOOT_MS);
  const disks = (path: string): DiskOptions[] => [{ serial: "system", path, bootIndex: 0 }];

  test(
    "a trial runs once: cut, it falls back to the old slot; marked good, it stays",
    async () => {
      const path = installedDisk("trial", {
        slotB: { rootHash: facts.rootHash },
        environment: (fresh) => ({ ...fresh, try: "B", state: { A: "good", B: "good" } }),
      });
      await withVm({ name: "boot-trial", memoryMiB: 1024, disks: disks(path) }, async (vm) => {
        const booted = async (slot: string): Promise<void> => {
          await consoleOf(vm, slot);
          await vm.shell.waitReady(BOOT_MS);
          expect(await bootFacts(vm)).toMatchObject({ mode: "disk", slot, installation: INSTALLATION });
        };
        const state = async (): Promise<unknown> => JSON.parse(await vm.shell.must("corium bootstate show"));
        await booted("B");
        const id = await vm.shell.must("cat /etc/machine-id");
        expect(await state()).toMatchObject({ good: "A", tried: "B", booted: "B", primary: "A" });
        await vm.reset();
        await booted("A");
        expect(await vm.shell.must("cat /etc/machine-id")).toBe(id);
        expect(await vm.shell.must("cat /etc/hostname")).toBe("from-slot");
        expect(await vm.shell.must("findmnt -no FSTYPE /var; findmnt -no FSTYPE /var/lib/corium")).toBe("ext4\next4");
        expect(await state()).toMatchObject({ good: "A", tried: "B", primary: "A" });
        expect((await vm.shell.run("corium bootstate set-state A bad")).stderr).toContain("can't be marked bad");
        await vm.shell.must("corium bootstate set-state B bad && corium bootstate set-primary B");
        expect(await vm.shell.must("findmnt /run/corium/esp || true")).toBe("");
        await vm.reset();
        await booted("B");
        await vm.shell.must("corium bootstate mark-good");
        await vm.reset();
        await booted("B");
      });
    },
    6 * BOOT_MS,
  );

  test(
    "by OVMF, a trial with a broken root goes back to the old slot with nobody's help",
    async () => {
      const path = installedDisk("broken", {
        slotB: { rootHash: WRONG_HASH },
        environment: (fresh) => ({ ...fresh, try: "B", state: { A: "good", B: "good" } }),
      });
      await withVm({ name: "boot-broken-trial", firmware: "ovmf", memoryMiB: 1024, disks: disks(path) }, async (vm) => {
        await vm.console.expect(/the root image in slot B \S+ does not match its root hash/, BOOT_MS);
        await consoleOf(vm, "A");
        await vm.shell.waitReady(BOOT_MS);
        expect(await bootFacts(vm)).toMatchObject({ mode: "disk", slot: "A" });
        expect(JSON.parse(await vm.shell.must("corium bootstate show"))).toMatchObject({ good: "A", tried: "B" });
      });
    },
    3 * BOOT_MS,
  );

  test(
    "after install and reboot with the medium still first, the machine boots its disk and does not install again",
    async () => {
      const path = installedDisk("medium-first");
      const media = [{ path: image.iso, bootIndex: 0 }];
      const options = {
        name: "boot-medium-first",
        memoryMiB: 1024,
        media,
        disks: [{ serial: "system", path, bootIndex: 1 }],
      };
      await withVm(options, async (vm) => {
        await consoleOf(vm, "A");
        await vm.shell.waitReady(BOOT_MS);
        expect(await bootFacts(vm)).toMatchObject({ mode: "disk", slot: "A" });
      });
    },
    2 * BOOT_MS,
  );

  test(
    "a second Corium disk in the box is said and never mixed in",
    async () => {
      const own = { serial: "system", path: installedDisk("own"), bootIndex: 0 };
      const other = { serial: "other", path: installedDisk("other", { installation: OTHER }) };
      // The other one comes first under the kernel's names.
      await withVm({ name: "boot-two", memoryMiB: 1024, disks: [other, own] }, async (vm) => {
        await consoleOf(vm, "A");
        await vm.shell.waitReady(BOOT_MS);
        expect(await bootFacts(vm)).toMatchObject({ mode: "disk", slot: "A", installation: INSTALLATION });
        expect(await vm.shell.must("findmnt -no SOURCE /var; findmnt -no SOURCE /var/lib/corium")).toMatch(
          /^\/dev\/vdb8\n\/dev\/vdb7$/,
        );
        await vm.console.expect(/serial other, 6 GiB\) holds another installed Corium; nothing of it is/, BOOT_MS);
        expect(await vm.writeCount("other")).toBe(0);
      });
    },
    2 * BOOT_MS,
  );
});
