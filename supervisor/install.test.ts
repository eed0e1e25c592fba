import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BootFacts } from "../kit/paths.ts";
import type { Executors, StepExecutor } from "../kit/step.ts";
import type { InstallStep } from "../provision/install/model.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";
import { findDocument } from "../config/driver.ts";
import { fail } from "../kit/app-error.ts";
import { PARTITIONS } from "../iso/layout.ts";
import { nodePaths } from "../kit/paths.ts";
import { ok } from "../kit/result.ts";
import { memoryState } from "../state/open.ts";
import { machine } from "../test/machines/machines.ts";
import { partUuidsOf } from "../iso/uuids.ts";
import { seedReader } from "../provision/seed/driver.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { type FakeMedium, mediaFiles, mediaPrograms } from "../test/support/fake-media.ts";
import { bootstrap } from "./bootstrap.ts";
import { parseBootstrapStatus } from "./bootstrap-status.ts";
import { consentOf, giveConsent } from "./own-consent.ts";
import { createReporter } from "./reporter.ts";

const paths = nodePaths();
const boot: BootFacts = {
  mode: "live",
  rootHash: "a".repeat(64),
  image: { directory: "/run/corium/medium/corium", hashOffsetBytes: 4096 },
  medium: { device: "/dev/sr0", mountPoint: "/run/corium/medium" },
};

function live(
  document: string | undefined,
  broken?: InstallStep["kind"],
  media?: Readonly<Record<string, FakeMedium>>,
) {
  const image = "/run/corium/medium/corium";
  const plugged = new Map(Object.entries(media ?? { "/dev/sdb1": strangersStick }));
  let faulty = broken;
  const done: string[] = [];
  const host = fakeHost({
    keptEtc: null,
    files: {
      [`${image}/root.img`]: "x".repeat(8192),
      [`${image}/vmlinuz`]: "k",
      [`${image}/initrd`]: "i",
      ...(document === undefined ? {} : { "/run/corium/medium/config.yaml": document }),
      ...mediaFiles,
    },
    programs: { systemctl: () => "", ...mediaPrograms(() => withStickAndDisc, plugged) },
  });
  const readSeeds = seedReader(host, { boot, folder: "/run/corium/seed/bootstrap" });
  const state = memoryState();
  const executor: StepExecutor<InstallStep> = {
    argv: () => [],
    check: async ({ id }) => ok(done.includes(id) ? "done" : "todo"),
    run: async ({ id, kind }) => {
      if (kind === faulty) return fail("tool", "sfdisk failed: it is write-protected");
      done.push(id);
      return ok(undefined);
    },
  };
  const kinds = [
    "disk:wipe",
    "install:partition",
    "install:slot",
    "install:loader",
    "install:state",
    "install:document",
    "install:boot",
  ];
  const services: BootstrapServices = {
    host,
    state,
    paths,
    boot,
    version: "0.1.0",
    cmdline: "console=ttyS0 corium.mode=live",
    reporter: createReporter(host.files, paths.runDir, "install", () => undefined),
    findDocument: () => findDocument(host, { paths, boot, cmdline: "", readSeeds }),
    readInventory: async () => ok(machine("blank-pair")),
    executors: () => {
      throw new Error("a live system never becomes a node");
    },
    installExecutors: () =>
      Object.fromEntries(kinds.map((kind) => [kind, executor])) as unknown as Executors<InstallStep>,
  };
  const rebooted = (): boolean => host.calls.some((call) => call === "exec systemctl --no-block reboot");
  return {
    services,
    state,
    done,
    rebooted,
    put: (path: string, text: string) => {
      host.put(path, text);
    },
    repair: () => void (faulty = undefined),
    status: () => parseBootstrapStatus(host.text("/run/corium/bootstrap.json") ?? ""),
  };
}

async function readLargeDisks() {
  const inventory = machine("blank-pair");
  return ok({ ...inventory, disks: inventory.disks.map((disk) => ({ ...disk, sizeBytes: 2 ** 34 })) });
}

/** Captured on such a machine: sdb is a stick, sr1 a second optical drive, vda a disk with the label of a seed. */
const withStickAndDisc = readFileSync(
  join(import.meta.dir, "../provision/seed/testdata/lsblk-json-b-O-stick-disc-virtio.txt"),
  "utf8",
);
const strangersStick: FakeMedium = { filesystem: "vfat", label: "HOLIDAY", files: {} };
const wanted = "role: single\ninstall: {disk: {serial: A}}\n";

describe("a live system", () => {
  test("without a document, or with one that installs nothing, it stays claimable and says so", async () => {
    for (const [document, message] of [
      [undefined, /claimed and given a document with install/],
      ["role: single\n", /has no install; a live system never becomes a node/],
    ] as const) {
      const of = live(document);
      expect(await bootstrap(of.services)).toBe(0);
      expect(of.status()).toMatchObject({ state: "idle", kind: "install" });
      expect(of.status()?.message).toMatch(message);
      expect(of.state.operations.list()).toEqual([]);
      expect(of.rebooted()).toBe(false);
    }
  });

  test("a stick labelled CORIUM is all that an installation needs; a disc in its drive may say the same", async () => {
    const stick: FakeMedium = { filesystem: "vfat", label: "CORIUM", files: { "config.yaml": wanted } };
    const userData = `#cloud-config\nusers: []\ncorium:\n  ${wanted.trimEnd().replaceAll("\n", "\n  ")}\n`;
    const disc: FakeMedium = { filesystem: "iso9660", label: "cidata", files: { "user-data": userData } };
    for (const media of [{ "/dev/sdb1": stick }, { "/dev/sdb1": stick, "/dev/sr1": disc }]) {
      const of = live(undefined, undefined, media);
      expect(await bootstrap({ ...of.services, readInventory: readLargeDisks })).toBe(0);
      expect(of.rebooted()).toBe(true);
      expect(of.state.documents.latest()).toMatchObject({ origin: "config.yaml on /dev/sdb1 (CORIUM)", text: wanted });
    }
  });

  test("seeds that contradict each other, or hang, are told by name, and nothing is touched", async () => {
    const stick: FakeMedium = { filesystem: "vfat", label: "CORIUM", files: { "config.yaml": wanted } };
    const other: FakeMedium = {
      filesystem: "iso9660",
      label: "cidata",
      files: { "user-data": "corium: {role: single}" },
    };
    for (const [disc, complaint] of [
      [other, /two seeds say different things: config\.yaml on \/dev\/sdb1.*user-data on \/dev\/sr1/],
      [{ ...other, hangs: "mount" } as const, /user-data on \/dev\/sr1[^]*can't be mounted: it did not end in time/],
    ] as const) {
      const of = live(undefined, undefined, { "/dev/sdb1": stick, "/dev/sr1": disc });
      expect(await bootstrap({ ...of.services, readInventory: readLargeDisks })).toBe(1);
      expect(of.status()?.error?.join("\n")).toMatch(complaint);
      expect(of.done).toEqual([]);
      expect(of.rebooted()).toBe(false);
    }
  });

  test("B008: a disk that is too small is refused with needed and found bytes, before anything is written", async () => {
    const of = live(wanted);
    expect(await bootstrap(of.services)).toBe(1);
    expect(of.status()?.error?.join("\n")).toMatch(/the disk has 536870912 bytes, \d+ are needed/);
    expect(of.done).toEqual([]);
    expect(of.rebooted()).toBe(false);
  });

  test("it installs by itself, records the operation, and restarts from the disk", async () => {
    const of = live(wanted);
    expect(await bootstrap({ ...of.services, readInventory: readLargeDisks })).toBe(0);
    expect(of.done.at(-1)).toBe("install:boot");
    expect(of.state.operations.list()).toMatchObject([{ kind: "install", phase: "succeeded" }]);
    expect(of.status()).toMatchObject({ state: "done", message: "installed; restarting from the disk" });
    expect(of.rebooted()).toBe(true);
  });

  test("a failure is shown with its cause, does not restart, and a retry goes on", async () => {
    const of = live(wanted, "install:loader");
    const services = { ...of.services, readInventory: readLargeDisks };
    expect(await bootstrap(services)).toBe(1);
    expect(of.status()?.error?.[0]).toContain("install:loader): sfdisk failed: it is write-protected");
    expect(of.rebooted()).toBe(false);
    of.repair();
    expect(await bootstrap(services)).toBe(0);
    expect(of.rebooted()).toBe(true);
    expect(of.state.operations.list().map(({ phase }) => phase)).toEqual(["succeeded", "failed"]);
  });

  test("the console's consent to lose an installed Corium is used up by the new table, and not by a failure before", async () => {
    const readInventory = async () => {
      const of = await readLargeDisks();
      const uuids = partUuidsOf("ab".repeat(16));
      const partitions = PARTITIONS.map(({ role, number, name }) => ({
        path: `/dev/vdb${number}`,
        number,
        sizeBytes: 2 ** 20,
        partUuid: uuids[role],
        label: name,
      }));
      const disks = of.value.disks.map((disk) => (disk.identity.serial === "A" ? { ...disk, partitions } : disk));
      return ok({ ...of.value, disks });
    };
    const document = "role: single\ninstall: {disk: {serial: A}, wipe: true}\n";
    for (const [broken, isSpent] of [
      ["disk:wipe", false],
      ["install:partition", false],
      ["install:slot", true],
    ] as const) {
      const of = live(document, broken);
      const services = { ...of.services, readInventory };
      expect(await bootstrap(services)).toBe(1);
      expect(of.status()?.error?.join("\n")).toContain("holds an installed Corium, which wipe never covers");
      const [disk] = (await readInventory()).value.disks.filter(({ identity }) => identity.serial === "A");
      giveConsent(of.state, { atMs: 1, by: "somebody", disks: disk === undefined ? [] : [disk.identity] });
      expect(await bootstrap(services)).toBe(1);
      expect(of.status()?.error?.[0]).toContain("it is write-protected");
      expect([broken, consentOf(of.state) === undefined]).toEqual([broken, isSpent]);
    }
    const other = live(document);
    giveConsent(other.state, { atMs: 1, by: "somebody", disks: [{ serial: "B", sizeBytes: 2 ** 34 }] });
    expect(await bootstrap({ ...other.services, readInventory })).toBe(1);
    expect(other.done).toEqual([]);
  });

  test("the consent of a claim is good for the disks of the node too: it goes along to the disk", async () => {
    const of = live(wanted);
    giveConsent(of.state, { atMs: 1, by: "operator ann" });
    expect(await bootstrap({ ...of.services, readInventory: readLargeDisks })).toBe(0);
    expect(consentOf(of.state)).toMatchObject({ by: "operator ann" });
  });

  test("the site's certificates go along to the disk; a named file that is not there stops it, nothing written", async () => {
    const of = live(wanted);
    const services = {
      ...of.services,
      readInventory: readLargeDisks,
      cmdline: "corium.config.ca=/site/ca.pem",
    };
    expect(await bootstrap(services)).toBe(1);
    expect(of.status()?.error?.join("\n")).toContain("corium.config.ca= can't be read");
    expect(of.done).toEqual([]);
    of.put("/run/corium/medium/site/ca.pem", "PEM of the site");
    expect(await bootstrap(services)).toBe(0);
    expect(await of.services.host.files.readText("/etc/corium/site-ca.pem")).toEqual(ok("PEM of the site"));
  });

  test("it holds an installation for no claim: unattended means nobody is there", async () => {
    const of = live(`${wanted}api: {enabled: true}\n`);
    expect(await bootstrap({ ...of.services, readInventory: readLargeDisks })).toBe(0);
    expect(of.rebooted()).toBe(true);
  });
});
