// budget: 1200 s
/** Documents that the kernel command line names: from the medium, from an https server; and those it must not take. */
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

const LONG_MS = 400_000;
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
          await vm.waitExit(30_000);
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
