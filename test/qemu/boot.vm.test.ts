// budget: 2400 s
/** How a machine gets from its firmware to our program: CD, stick, network, disk; trial, fall-back and refusals. */
import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { makeDisk } from "../../iso/build/disk.ts";
import type { BootEnv } from "../../iso/bootenv.ts";
import { HOST_ADDRESS, startServer } from "./harness/http.ts";
import { liveBoot, testImage } from "./harness/image.ts";
import type { DiskOptions, VmOptions } from "./harness/options.ts";
import { withVm, type Vm } from "./harness/vm.ts";

const image = await testImage();
const facts = JSON.parse(readFileSync(join(dirname(image.pxe), "image.json"), "utf8")) as {
  readonly version: string;
  readonly rootHash: string;
  readonly hashOffsetBytes: number;
  readonly sha256: string;
  readonly bootFiles: string;
};
const directory = mkdtempSync(join(tmpdir(), "corium-boot-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const INSTALLATION = "0123456789abcdef0123456789abcdef";
const WRONG_HASH = "00".repeat(32);
/** Four times what it takes alone under TCG. */
const BOOT_MS = 500_000;

const bootFacts = async (vm: Vm): Promise<unknown> => JSON.parse(await vm.shell.must("cat /run/corium/boot.json"));

/** A disk as the installer leaves it, made offline. */
function installedDisk(
  name: string,
  more: { readonly slotB?: { readonly rootHash: string }; readonly environment?: (fresh: BootEnv) => BootEnv } = {},
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

describe("the medium", () => {
  const live = async (vm: Vm): Promise<void> => {
    await vm.console.expect(/phase: live/, BOOT_MS);
    await vm.shell.waitReady(BOOT_MS);
    expect(await bootFacts(vm)).toMatchObject({
      mode: "live",
      rootHash: facts.rootHash,
      image: { directory: "/run/corium/medium/corium", hashOffsetBytes: facts.hashOffsetBytes },
      medium: { mountPoint: "/run/corium/medium" },
    });
    expect(await vm.shell.must("findmnt -no SOURCE,FSTYPE /")).toMatch(/^\/dev\/mapper\/corium-root +squashfs$/);
  };

  test(
    "from CD by SeaBIOS: reaches the console; nobody can log in, no shell can be had",
    async () => {
      await withVm({ name: "boot-cd-bios", memoryMiB: 1024, media: [{ path: image.iso }] }, async (vm) => {
        await live(vm);
        const { shell } = vm;
        expect(
          await shell.must("systemctl is-active 'getty@*' 'serial-getty@*' debug-shell emergency rescue || true"),
        ).not.toMatch(/^active/m);
        for (const unit of ["getty@tty1", "serial-getty@ttyS0", "debug-shell", "emergency", "rescue"]) {
          expect(await shell.must(`systemctl show -P LoadState ${unit}.service`)).toBe("masked");
        }
        expect(await shell.must("systemctl show -P Id rescue.target")).toBe("corium-rescue.target");
        expect(await shell.must("systemctl show -P Wants emergency.target")).toMatch(/^corium-rescue@\S+/);
        expect(await shell.must("cut -d: -f2 /etc/shadow | sort -u")).toBe("!*");
        expect(
          await shell.must(
            "grep -c '/nologin$\\|/false$\\|/sync$' /etc/passwd; grep -vc '/nologin$\\|/false$\\|/sync$' /etc/passwd || true",
          ),
        ).toMatch(/\n0$/);
        expect((await shell.run("touch /usr/x || touch /x")).exitCode).not.toBe(0);
        expect(await shell.must("cat /etc/machine-id")).toMatch(/^[0-9a-f]{32}$/);
        await shell.run("timeout 60 systemctl is-system-running --wait");
        expect(await shell.must("systemctl --failed --no-legend --plain")).toBe("");
      });
    },
    2 * BOOT_MS,
  );

  test(
    "from a USB stick by OVMF, through shim",
    async () => {
      const media = [{ path: image.iso, as: "usb" as const }];
      await withVm({ name: "boot-usb-ovmf", firmware: "ovmf", memoryMiB: 1024, media }, async (vm) => {
        await live(vm);
        await vm.shell.must("test -d /sys/firmware/efi");
      });
    },
    2 * BOOT_MS,
  );

  test(
    "a wrong hash of the root is refused with a message on the console",
    async () => {
      const boot = liveBoot(image);
      const append = (boot.kernel?.append ?? "").replace(facts.rootHash, WRONG_HASH);
      expect(append).toContain(WRONG_HASH);
      const kernel = { ...(boot.kernel ?? { path: "" }), append };
      await withVm({ ...boot, name: "boot-wrong-root", memoryMiB: 1024, kernel, shell: false }, async (vm) => {
        await vm.console.expect(/does not match its root hash/, BOOT_MS);
        await vm.console.expect(/not booting; restarting in 30 seconds/, 60_000);
        expect(vm.console.text()).not.toContain("phase:");
      });
    },
    BOOT_MS,
  );
});

describe("the network", () => {
  const pxe = (name: string, file: string): VmOptions => ({ name, memoryMiB: 1536, pxe: { file }, shell: true });

  test(
    "iPXE fetches everything by HTTP; the root is checked by its hash",
    async () => {
      const server = startServer({ directory: image.pxe });
      try {
        await withVm(pxe("boot-pxe", `http://${HOST_ADDRESS}:${server.port}/boot.ipxe`), async (vm) => {
          await vm.console.expect(/phase: live/, BOOT_MS);
          await vm.shell.waitReady(BOOT_MS);
          expect(await bootFacts(vm)).toMatchObject({ mode: "live", fetchedFrom: `${server.url}/root.squashfs` });
          await vm.shell.must("cd /run/corium/medium/corium && sha256sum -c /usr/share/corium/boot/SHA256SUMS");
        });
      } finally {
        server.stop();
      }
    },
    2 * BOOT_MS,
  );

  test(
    "a root that is not the one of the command line is refused with a message on the console",
    async () => {
      const folder = join(directory, "pxe");
      cpSync(image.pxe, folder, { recursive: true });
      const script = readFileSync(join(folder, "boot.ipxe"), "utf8");
      writeFileSync(
        join(folder, "boot.ipxe"),
        script.replace(`corium.sha256=${facts.sha256}`, `corium.sha256=${WRONG_HASH}`),
      );
      const server = startServer({ directory: folder });
      try {
        await withVm(pxe("boot-pxe-wrong", `http://${HOST_ADDRESS}:${server.port}/boot.ipxe`), async (vm) => {
          await vm.console.expect(/the root fetched from \S+ does not match its hash/, BOOT_MS);
          await vm.console.expect(new RegExp(`got +${facts.sha256}`), 60_000);
          expect(vm.console.text()).not.toContain("phase:");
        });
      } finally {
        server.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    },
    2 * BOOT_MS,
  );
});

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
});
