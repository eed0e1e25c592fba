/** An installation from a live system, which forgets everything with its power, cut at every call of the machine. */
// budget: 900 s
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { readInventory } from "../../disks/driver.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { formatError } from "../../kit/app-error.ts";
import { formatFinding } from "../../kit/finding.ts";
import { execute } from "../../provision/execute.ts";
import type { CarryOver } from "../../provision/install/driver.ts";
import { installExecutors } from "../../provision/install/driver.ts";
import { finishTable } from "../../provision/install/table/driver.ts";
import { readMarks, releaseMounts } from "../../provision/install/remains/driver.ts";
import { planInstall } from "../../provision/install/plan.ts";
import type { State } from "../../state/open.ts";
import { memoryState } from "../../state/open.ts";
import { createCarryOver } from "../../supervisor/carry-over.ts";
import type { FakeProgram } from "../support/fake-host.ts";
import { fakeHost } from "../support/fake-host.ts";
import { BlockMachine } from "./block-machine.ts";
import type { Subject, Way } from "./crash-points.ts";
import { CUTS, survey, WAYS } from "./crash-points.ts";
import { diskTools } from "./disk-tools.ts";
import { installTools, onPortWrite, syncFilesystem } from "./install-tools.ts";
import { VolatileDisk } from "./volatile-disk.ts";
import { sha256Of } from "../../kit/sha256.ts";

const GIB = 1024 ** 3;
const text = "role: single\ninstall: {disk: {serial: SYS}}\n";
const documentSha256 = sha256Of(text);
const medium = "/run/corium/medium/corium";
const bootFiles = "/usr/share/corium/boot";
/** SQLite needs a real folder: it stands for the mounted state partition while the database is copied there. */
const folder = mkdtempSync("/dev/shm/corium-crash-");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const old = { guid: "99999999-0000-4000-8000-000000000001", partitions: [] };
const contents: Readonly<
  Record<string, { readonly wipe: boolean; readonly areas: Readonly<Record<string, unknown>> }>
> = {
  "a blank disk, without consent to wipe": { wipe: false, areas: {} },
  "a disk with somebody's data, which may go": {
    wipe: true,
    areas: {
      "0:pmbr": true,
      "0:table": old,
      "end:table": old,
      [`${1024 ** 2}:super`]: { type: "ext4", run: -1, uuid: "a" },
    },
  },
};

interface Sabotage {
  readonly machine?: (machine: BlockMachine) => void;
  readonly programs?: Readonly<Record<string, FakeProgram>>;
}

function subject(content: string, sabotage: Sabotage = {}, onCall?: () => void): Subject {
  const { wipe, areas } = contents[content] ?? { wipe: false, areas: {} };
  const disks = ["SYS", "BYSTANDER", "BLANK"].map((serial) => new VolatileDisk(serial, 16 * GIB));
  const [system, bystander] = disks;
  for (const [name, value] of Object.entries(areas)) system?.put(name, value);
  bystander?.put("0:super", { type: "ext4", run: -1, uuid: "e" });
  const machine = new BlockMachine(disks);
  const tools = { ...diskTools(machine), ...installTools(machine) };
  const host = fakeHost({
    ...(onCall === undefined ? {} : { onCall }),
    keptEtc: null,
    onWrite: (path, node) => onPortWrite(machine, path, node),
    programs: {
      ...tools,
      ...(tools["sync"] && { sync: syncFilesystem(machine, tools["sync"]) }),
      ...sabotage.programs,
    },
    files: {
      [`${medium}/root.img`]: "squashfs and its tree",
      [`${medium}/vmlinuz`]: "kernel",
      [`${medium}/initrd`]: "initramfs",
      [`${bootFiles}/boot.img`]: "b".repeat(512),
      [`${bootFiles}/core.img`]: "c".repeat(2048),
      ...Object.fromEntries(
        ["shimx64.efi", "grubx64.efi", "mmx64.efi", "grub.cfg"].map((name) => [`${bootFiles}/${name}`, name]),
      ),
      "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
      "/var/lib/corium/api/server.pem": "identity",
    },
  });
  sabotage.machine?.(machine);
  machine.publish(host);
  let state: State = memoryState();
  const inventory = () => readInventory(host, { mode: "live" });

  /** As the real one; only where the database goes is a real folder. */
  function carryOver(operation: string): CarryOver {
    const real = createCarryOver({
      host,
      stateDir: "/var/lib/corium",
      snapshotTo: (path) => state.snapshotTo(path),
      documentText: text,
      operation,
    });
    return {
      isComplete: (root, step) => real.isComplete(root, step),
      copy: async (root, step) => {
        rmSync(folder, { recursive: true, force: true });
        mkdirSync(folder, { recursive: true });
        machine.mounts = machine.mounts.map((mount) =>
          mount.point === root ? { ...mount, aliases: [folder] } : mount,
        );
        return real.copy(folder, step);
      },
    };
  }

  /** It would boot from the disk now, which puts right what the last act left. */
  async function firstBoot(): Promise<string | undefined> {
    const uuid = machine
      .devices()
      .map((device) => machine.partitionOf(device))
      .find((part) => part?.number === 7)?.uuid;
    const finished = await finishTable(host, `/dev/disk/by-partuuid/${uuid ?? ""}`);
    return finished.ok ? undefined : formatError(finished.error);
  }

  return {
    host,
    async run() {
      await releaseMounts(host);
      const found = await inventory();
      if (!found.ok) return formatError(found.error);
      const plan = planInstall({
        document: { install: { disk: { serial: "SYS" }, wipe } },
        documentSha256,
        inventory: found.value,
        image: { directory: medium, rootBytes: 21, rootHash: "a".repeat(64), hashOffsetBytes: 9 },
        version: "0.1.0",
        args: "console=ttyS0",
        uuid: () => host.random.uuid(),
        intents: state.journal.intents(),
        marks: await readMarks(host, found.value),
      });
      const errors = plan.findings.filter(({ severity }) => severity === "error");
      if (errors.some(({ code }) => code === "installed")) return firstBoot();
      if (errors.length > 0) return errors.map(formatFinding).join("\n");
      const running = state.operations.running();
      const begun =
        running ?? state.operations.begin({ kind: "install", requester: { kind: "document" }, version: "0", atMs: 1 });
      const operation = "id" in begun ? begun.id : begun.ok ? begun.value.id : "";
      const done = await execute(
        plan.steps,
        { ...installExecutors(carryOver(operation), bootFiles), ...diskExecutors },
        { host, secrets: new Map(), journal: state.journal, inventory },
      );
      return done.ok ? undefined : formatError(done.error);
    },
    tear: (stage) => void (machine.tearStage = stage),
    powerCut(remains) {
      machine.powerCut(remains);
      state.close();
      state = memoryState();
      host.boot();
      machine.publish(host);
    },
    violations: () =>
      disks.filter((disk) => disk !== system && disk.writes > 0).map(({ serial }) => `disk ${serial} was written`),
    state: () => inOrder(JSON.stringify(machine.visible(), null, 1)),
    promises: () => {
      // A table that can be read chooses for all that follows.
      const table = machine
        .devices()
        .map((device) => machine.tableOf(device))
        .find((each) => each?.partitions.length === 8);
      return table === undefined ? [] : [table.guid];
    },
    fingerprint: () =>
      JSON.stringify([machine.contents(), host.paths("/run/corium/install"), state.journal.intents().length]),
  };
}

/** Identifiers and runs of mkfs by order of appearance. */
function inOrder(found: string): string {
  const names = new Map<string, string>();
  return found
    .replace(/"run": \d+/g, '"run": 0')
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g, (each) => {
      const key = each.replaceAll("-", "");
      names.set(key, names.get(key) ?? `uuid ${names.size + 1}`);
      return names.get(key) ?? "";
    })
    .replace(/"uuid": "[0-9a-f]{8}"/g, '"uuid": "volume"');
}

/** sfdisk writes a table in five parts. */
const STAGES: readonly Way[] = [1, 2, 3, 4, 5].map((stage) => ({ fate: "during", cache: "dropped", stage }));
const ways = [...WAYS, ...STAGES];
/** What comes before the table is the storage's, where calls fail as well. */
const waysOf: Readonly<Record<string, readonly Way[]>> = { "a blank disk, without consent to wipe": ways };

test.each(Object.keys(contents))(
  "power lost, a process killed or a call failed anywhere: it goes on by itself and ends the same (%s)",
  async (content) => {
    const { calls, deaths, flaws } = await survey((onCall) => subject(content, {}, onCall), {
      ways: waysOf[content] ?? [...CUTS, ...STAGES],
    });
    expect(flaws.slice(0, 12)).toEqual([]);
    expect(calls).toBeGreaterThan(100);
    expect(deaths).toBeGreaterThan(200);
  },
  600_000,
);

describe("the check can fail", () => {
  const blank = "a blank disk, without consent to wipe";
  const controls: Readonly<Record<string, Sabotage & { readonly finds: RegExp; readonly ways: readonly Way[] }>> = {
    "a kernel that does not look at the backup table": {
      machine: (machine) => void (machine.readsBackup = false),
      ways: STAGES,
      finds: /holds data: gpt/,
    },
    "disks that ignore flushes": {
      machine: ({ disks }) => disks.forEach((disk) => (disk.isLying = true)),
      ways,
      finds: /chosen anew/,
    },
  };
  test.each(Object.entries(controls))(
    "%s",
    async (_, { finds, ways: tried, ...sabotage }) => {
      const options = { ways: tried, isControl: true };
      const { flaws } = await survey((onCall) => subject(blank, sabotage, onCall), options);
      expect(flaws[0]?.problem).toMatch(finds);
    },
    600_000,
  );
});
