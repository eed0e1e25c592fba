// budget: 900 s
/** The main road: boot the live system, install, reboot from disk, claim, RAID, WireGuard, k0s, in service. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRaw, makeForeignArray, sha256 } from "./harness/disk.ts";
import { liveBoot, testImage } from "./harness/image.ts";
import { openOperator } from "./harness/node.ts";
import type { DiskOptions } from "./harness/options.ts";
import { withVm } from "./harness/vm.ts";

const image = await testImage();
const operator = await openOperator();
const directory = mkdtempSync(join(tmpdir(), "corium-node-"));
afterAll(() => {
  operator.dispose();
  rmSync(directory, { recursive: true, force: true });
});

const DOCUMENT = `role: single
cluster: { name: demo }
node: { name: node1 }
api: { enabled: true }
install: { disk: { serial: system } }
raid:
  - name: data
    level: 1
    devices: [{ serial: data-a }, { serial: data-b }]
    mountPoint: /var/lib/k0s
wireguard:
  - name: wg0
    address: 10.9.0.1/24
    listenPort: 51820
    generateKey: true
`;

/** Kept between the tests of this file: each goes on with what the one before left on the disks. */
const disk = (serial: string, sizeMiB: number, more: Partial<DiskOptions> = {}): DiskOptions => ({
  serial,
  path: createRaw(join(directory, `${serial}.raw`), sizeMiB),
  ...more,
});
const disks = [disk("system", 6144, { bootIndex: 0 }), disk("data-a", 512), disk("data-b", 512), disk("foreign", 256)];

let isInstalled = false;

describe("from the live system to a node in service", () => {
  test("installs itself unattended and never writes to a disk of somebody else", async () => {
    const foreign = join(directory, "foreign.raw");
    makeForeignArray([foreign], { name: "theirs", level: 1, sizeMiB: 256 });
    const before = sha256(foreign);
    await withVm(
      { name: "node-install", memoryMiB: 1536, disks, isRebootExit: true, ...liveBoot(image, { document: DOCUMENT }) },
      async (vm) => {
        await vm.waitExit(400_000);
        // The console's own words; a reboot for another reason ends the machine too.
        expect(vm.console.text()).toMatch(/installed|reboot/i);
      },
    );
    expect(sha256(foreign)).toBe(before);
    isInstalled = true;
  }, 420_000);

  test("boots from its disk, is claimed, and comes into service", async () => {
    // Minutes of waiting for what can't come would only hide the first failure.
    if (!isInstalled) throw new Error("the installation failed: see the test before");
    await withVm({ name: "node-disk", memoryMiB: 1536, disks, forwards: [7443] }, async (vm) => {
      await operator.enroll(vm, "node1", 240_000);
      const node = await operator.waitInService("node1", 300_000);
      expect(node).toMatchObject({ hostname: "node1", role: "single", kubernetes: { standIn: true, active: true } });
      expect(node.storage.arrays).toMatchObject([{ name: "data", active: 2, expected: 2 }]);
      expect(node.overlay).toMatchObject([{ name: "wg0", up: true }]);
      expect(await vm.writeCount("foreign")).toBe(0);
      await vm.shell.waitReady(30_000);
      expect(await vm.shell.must("findmnt -no SOURCE,FSTYPE /var/lib/k0s")).toMatch(/^\/dev\/md\S+ +ext4$/);
      expect(await vm.shell.must("wg show wg0 listen-port")).toBe("51820");
      expect(await vm.shell.must("k0s kubectl get nodes")).toMatch(/node1 +Ready/);
      expect(await vm.shell.must("ls /var/lib/corium/bootstrapped")).toBe("/var/lib/corium/bootstrapped");
    });
  }, 600_000);
});
