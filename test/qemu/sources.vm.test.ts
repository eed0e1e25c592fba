// budget: 3000 s, last
/** Documents of seed media, and those that the kernel command line names: from the medium, from an https server. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRaw, runTool } from "./harness/disk.ts";
import { createTestCa, startServer } from "./harness/http.ts";
import { liveBoot, testImage } from "./harness/image.ts";
import { synchronizeClock } from "./harness/inside.ts";
import type { DiskOptions } from "./harness/options.ts";
import { withVm } from "./harness/vm.ts";

const LONG_MS = 900_000;
const DOCUMENT = `role: single
node: { name: unattended }
install: { disk: { serial: system } }
`;

const image = await testImage();
const directory = mkdtempSync(join(tmpdir(), "corium-sources-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const authority = await createTestCa();

/** The ISO with a certificate authority and a document of the site on it, as people add them with any ISO tool. */
async function siteMedium(): Promise<string> {
  const iso = join(directory, "site.iso");
  writeFileSync(join(directory, "ca.pem"), authority.cert);
  writeFileSync(join(directory, "node.yaml"), DOCUMENT);
  const add = [
    "-map",
    join(directory, "ca.pem"),
    "/site/ca.pem",
    "-map",
    join(directory, "node.yaml"),
    "/site/node.yaml",
  ];
  await runTool(["xorriso", "-indev", image.iso, "-outdev", iso, "-boot_image", "any", "replay", ...add]);
  return iso;
}

const medium = await siteMedium();
const boot = (append: string) => ({ ...liveBoot(image, { append }), media: [{ path: medium }] });
const disk = (name: string): DiskOptions => ({
  serial: "system",
  path: createRaw(join(directory, `${name}.raw`), 6144),
});

/** As sticks come from the shop: a partition with FAT on it. */
async function seedStick(document: string): Promise<string> {
  const path = createRaw(join(directory, "stick.img"), 32);
  writeFileSync(join(directory, "stick.yaml"), document);
  await runTool(["sfdisk", "-q", path], "label: dos\nstart=2048, type=c\n");
  await runTool(["mkfs.vfat", "-n", "CORIUM", "--offset", "2048", path, String(31 * 1024)]);
  await runTool(["mcopy", "-i", `${path}@@1M`, join(directory, "stick.yaml"), "::config.yaml"]);
  return path;
}

/** As hypervisors make them. */
async function seedDisc(userData: string): Promise<string> {
  const path = join(directory, "seed.iso");
  const root = mkdtempSync(join(directory, "seed-"));
  writeFileSync(join(root, "user-data"), userData);
  writeFileSync(join(root, "meta-data"), "instance-id: i-1\n");
  await runTool(["xorriso", "-as", "mkisofs", "-quiet", "-volid", "cidata", "-joliet", "-rock", "-o", path, root]);
  return path;
}

/** Not on the console: that may look away for as long as a step takes. */
const untilPartitioned =
  "until [ x$(blkid -p -s PTTYPE -o value /dev/disk/by-id/virtio-system) = xgpt ]; do sleep 1; done";

describe("a seed medium", () => {
  test(
    "a stick labelled CORIUM: the machine installs itself with nobody there, and needs the stick no more",
    async () => {
      const system = disk("stick");
      const live = liveBoot(image);
      const media = [...(live.media ?? []), { path: await seedStick(DOCUMENT), as: "usb" } as const];
      const install = { name: "sources-stick", memoryMiB: 1536, disks: [system], isRebootExit: true } as const;
      await withVm({ ...install, ...live, media }, async (vm) => {
        await vm.shell.waitReady(LONG_MS);
        await vm.shell.must(untilPartitioned, LONG_MS);
        expect(await vm.shell.must("grep -c /run/corium/seed /proc/mounts || true")).toBe("0");
        await vm.console.expect(/reboot: Restarting system/, LONG_MS);
        await vm.waitExit(120_000);
      });
      const installed = { ...system, bootIndex: 0 };
      await withVm({ name: "sources-stickless", memoryMiB: 1536, disks: [installed] }, async (vm) => {
        await vm.shell.waitReady(LONG_MS);
        expect(await vm.shell.must("cat /etc/corium/config.yaml")).toBe(DOCUMENT.trim());
        await synchronizeClock(vm.shell);
        await vm.shell.must("until [ $(cat /proc/sys/kernel/hostname) = unattended ]; do sleep 1; done", LONG_MS);
      });
    },
    3 * LONG_MS,
  );

  test(
    "a disc labelled cidata with a cloud-config; a disk of the machine with such a label is not asked",
    async () => {
      const userData = `#cloud-config\nusers: [default]\ncorium:\n${DOCUMENT.replaceAll(/^/gm, "  ").trimEnd()}\n`;
      const live = liveBoot(image);
      const media = [...(live.media ?? []), { path: await seedDisc(userData) }];
      const fixed = createRaw(join(directory, "fixed.raw"), 64);
      await runTool(["mkfs.vfat", "-n", "CORIUM", fixed]);
      writeFileSync(join(directory, "other.yaml"), DOCUMENT.replace("unattended", "somebody-else"));
      await runTool(["mcopy", "-i", fixed, join(directory, "other.yaml"), "::config.yaml"]);
      const disks = [disk("disc"), { serial: "fixed", path: fixed }];
      await withVm({ name: "sources-disc", memoryMiB: 1536, disks, ...live, media }, async (vm) => {
        await vm.shell.waitReady(LONG_MS);
        await vm.shell.must(untilPartitioned, LONG_MS);
        const log = await vm.shell.must("journalctl -b -u corium-bootstrap --no-pager -o cat");
        expect(log).toMatch(/\/dev\/vd[ab] is labelled CORIUM, but seeds are read from removable media only/);
        expect(await vm.writeCount("fixed")).toBe(0);
      });
    },
    2 * LONG_MS,
  );
});

describe("a document that the kernel command line names", () => {
  test(
    "from an https server, under UEFI: installs, reboots and comes into service with nobody there",
    async () => {
      const server = startServer({
        tls: await authority.server(),
        respond: (request) => (new URL(request.url).pathname === "/node.yaml" ? new Response(DOCUMENT) : undefined),
      });
      const system = disk("https");
      try {
        const append = `corium.config=${server.url}/node.yaml corium.config.ca=medium:/site/ca.pem`;
        const install = {
          name: "sources-install",
          firmware: "ovmf",
          memoryMiB: 1536,
          disks: [system],
          isRebootExit: true,
        } as const;
        await withVm({ ...install, ...boot(append) }, async (vm) => {
          await vm.console.expect(/reboot: Restarting system/, LONG_MS);
          await vm.waitExit(120_000);
        });
        expect(server.requests).toContain("GET /node.yaml");
      } finally {
        server.stop();
      }
      const installed = { ...system, bootIndex: 0 };
      // With fresh variables: what was installed is found at its removable path, as on a machine that lost its own.
      await withVm({ name: "sources-disk", firmware: "ovmf", memoryMiB: 1536, disks: [installed] }, async (vm) => {
        await vm.shell.waitReady(LONG_MS);
        await vm.shell.must("test -d /sys/firmware/efi");
        await synchronizeClock(vm.shell);
        await vm.console.expect(/phase: in-service/, LONG_MS);
        expect(await vm.shell.must("cat /etc/hostname")).toBe("unattended");
        expect(await vm.shell.must("k0s kubectl get nodes")).toMatch(/unattended +Ready/);
      });
    },
    3 * LONG_MS,
  );

  test(
    "from the medium, but not the one that its hash pins: refused on the console, no disk is written",
    async () => {
      const append = `corium.config=medium:/site/node.yaml corium.config.sha256=${"0".repeat(64)}`;
      await withVm({ name: "sources-pin", memoryMiB: 1536, disks: [disk("pin")], ...boot(append) }, async (vm) => {
        await vm.console.expect(/error: .*is not the document that corium\.config\.sha256 pins/, LONG_MS);
        expect(await vm.writeCount("system")).toBe(0);
      });
    },
    LONG_MS,
  );

  test(
    "from the medium, without a pin: the installation begins by itself",
    async () => {
      const append = "corium.config=medium:/site/node.yaml";
      await withVm(
        { name: "sources-medium", memoryMiB: 1536, disks: [disk("medium")], ...boot(append) },
        async (vm) => {
          await vm.shell.waitReady(LONG_MS);
          // On the disk, not on the console: that may look away for as long as a step takes.
          await vm.shell.must("until [ x$(blkid -p -s PTTYPE -o value /dev/vda) = xgpt ]; do sleep 1; done", LONG_MS);
        },
      );
    },
    LONG_MS,
  );
});
