/** The rescue menu's work from the medium, on a real disk: looking, re-keying, repairing. */
// budget: 120 s
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realHost } from "../../host/real.ts";
import { unlockVolume } from "../../luks/driver.ts";
import { PARTITIONS } from "../../iso/layout.ts";
import type { Disk } from "../../kit/disk.ts";
import { nodePaths } from "../../kit/paths.ts";
import { ok } from "../../kit/result.ts";
import { partUuidsOf } from "../../iso/uuids.ts";
import { openState } from "../../state/open.ts";
import { isReKeyed, reKey } from "../../supervisor/re-key.ts";
import { createRescue } from "../../supervisor/rescue.ts";
import { nodeVolumes } from "../../supervisor/volumes.ts";
import { attach, type LoopDevice, sh, whyNoLoop } from "./loop-device.ts";

const reason = whyNoLoop("mkfs.ext4", "sfdisk", "partx", "mount", "debugfs", "e2fsck");
if (reason !== undefined) process.stderr.write(`skipped test/loop: ${reason}\n`);

const uuids = partUuidsOf("ab".repeat(16));
const work = mkdtempSync(join(tmpdir(), "corium-rescue-"));
const attached: LoopDevice[] = [];
afterEach(() => {
  for (const device of attached.splice(0)) device.detach();
  rmSync(work, { recursive: true, force: true });
});

/** With the table of an installed disk; only state and data hold anything. */
function installedDisk(): LoopDevice {
  const device = attach(64);
  attached.push(device);
  const rows = PARTITIONS.map(({ role, number, name }) => {
    const sizeMib = role === "state" ? 24 : role === "data" ? 16 : 1;
    return `${number}: size=${sizeMib}MiB, name=${name}, uuid=${uuids[role]}`;
  });
  const table = join(work, "table");
  mkdirSync(work, { recursive: true });
  writeFileSync(table, `label: gpt\n${rows.join("\n")}\n`);
  sh("sh", "-c", `sfdisk --quiet ${device.path} <${table} && partx --update ${device.path}`);
  for (const number of [7, 8]) sh("mkfs.ext4", "-q", `${device.path}p${number}`);
  return device;
}

function mounted<T>(partition: string, use: (folder: string) => T): T {
  const folder = join(work, "mounted");
  mkdirSync(folder, { recursive: true });
  sh("mount", "-t", "ext4", partition, folder);
  try {
    return use(folder);
  } finally {
    sh("umount", folder);
  }
}

function withState<T>(
  folder: string,
  use: (state: Extract<ReturnType<typeof openState>, { ok: true }>["value"]) => T,
): T {
  const opened = openState(nodePaths(folder));
  if (!opened.ok) throw new Error(opened.error.message);
  try {
    return use(opened.value);
  } finally {
    opened.value.close();
  }
}

function rescueOn({ path }: LoopDevice) {
  const disk = (): Disk => ({
    path,
    links: [],
    identity: { serial: "LOOP", sizeBytes: 2 ** 26 },
    sizeBytes: 2 ** 26,
    logicalSectorBytes: 512,
    physicalSectorBytes: 512,
    bus: "other",
    type: "ssd",
    isRemovable: false,
    isReadOnly: false,
    partitions: PARTITIONS.map(({ role, number, name }) => ({
      path: `${path}p${number}`,
      number,
      sizeBytes: 2 ** 20,
      partUuid: uuids[role],
      label: name,
    })),
    signatures: [7, 8].map((number) => ({
      type: sh("blkid", "-p", "-s", "TYPE", "-o", "value", `${path}p${number}`),
      device: `${path}p${number}`,
      where: `partition ${number}`,
    })),
    users: [],
    isBootMedium: false,
    isSystemDisk: false,
  });
  const host = realHost();
  return createRescue({
    host,
    paths: nodePaths(join(work, "live"), join(work, "run")),
    boot: { mode: "live" },
    readInventory: async () => ok({ disks: [disk()], arrays: [], unknown: [] }),
    openState: async (of) => openState(of),
    reKey,
    volumesOf: (state) => nodeVolumes(host, state),
    unlock: unlockVolume,
  });
}

describe.skipIf(reason !== undefined)("from the medium", () => {
  test("looking leaves every byte as it was; re-keying forgets the CA on the disk, and nothing stays mounted", async () => {
    const device = installedDisk();
    const state = `${device.path}p7`;
    mounted(state, (folder) => {
      mkdirSync(join(folder, "etc"));
      writeFileSync(join(folder, "etc/hostname"), "n7\n");
      withState(folder, (open) =>
        open.claim.record({ operatorCA: "pem", fingerprint: "SHA256:old", atMs: 1, by: "enroll" }),
      );
    });
    const rescue = rescueOn(device);
    const before = device.digest();
    const sight = await rescue.look();
    expect(sight.ok && sight.value.systems).toMatchObject([{ name: "n7", device: state }]);
    expect(device.digest()).toBe(before);
    expect(await rescue.reKey(state)).toEqual({ ok: true, value: "SHA256:old" });
    expect(sh("mount")).not.toContain(device.path);
    mounted(state, (folder) =>
      withState(folder, (open) => {
        expect([open.claim.get(), isReKeyed(open)]).toEqual([undefined, true]);
        expect(open.audit.last(1)).toMatchObject([{ route: "rescue re-key", requester: { kind: "console" } }]);
      }),
    );
    expect(await rescue.reKey(state)).toMatchObject({ ok: false, error: { code: "unclaimed" } });
  });

  test("a state without a database is not made one, and a file system whose root is gone is repaired", async () => {
    const device = installedDisk();
    const [state, data] = [`${device.path}p7`, `${device.path}p8`];
    const rescue = rescueOn(device);
    expect(await rescue.reKey(state)).toMatchObject({ ok: false, error: { code: "no-state" } });
    mounted(data, (folder) => writeFileSync(join(folder, "kept"), "x"));
    sh("debugfs", "-w", "-R", "clri <2>", data);
    // The initramfs asks for no more than this, and leaves it unmounted.
    expect(() => sh("e2fsck", "-p", "-f", data)).toThrow();
    const repaired = await rescue.repair(data);
    expect(repaired.ok && repaired.value.at(-1)).toBe("repaired");
    expect(await rescue.repair(data)).toMatchObject({ ok: true });
    expect(sh("e2fsck", "-p", "-f", data)).toContain("files");
  });
});
