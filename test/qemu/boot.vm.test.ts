// budget: 1500 s
/** How a machine gets from its firmware to our program: CD, stick and network, and what is refused on the way. */
import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HOST_ADDRESS, startServer } from "./harness/http.ts";
import { imageFacts, liveBoot, testImage } from "./harness/image.ts";
import type { VmOptions } from "./harness/options.ts";
import { withVm, type Vm } from "./harness/vm.ts";

const image = await testImage();
const facts = imageFacts(image);
const directory = mkdtempSync(join(tmpdir(), "corium-boot-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const WRONG_HASH = "00".repeat(32);
/** Four times what it takes alone under TCG. */
const BOOT_MS = 500_000;

const bootFacts = async (vm: Vm): Promise<unknown> => JSON.parse(await vm.shell.must("cat /run/corium/boot.json"));

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
      const options = { name: "boot-cd-bios", memoryMiB: 1024, media: [{ path: image.iso }], hasScreen: true };
      await withVm(options, async (vm) => {
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
      await withVm({ name: "boot-usb-ovmf", firmware: "ovmf", memoryMiB: 1024, media, hasScreen: true }, async (vm) => {
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
