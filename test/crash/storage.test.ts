/** The storage of a first boot (disks, array, filesystems, mounts), cut at every call that it makes of the machine. */
// budget: 900 s
import { describe, expect, test } from "bun:test";
import { readInventory } from "../../disks/driver.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { appError, formatError } from "../../kit/app-error.ts";
import type { OwnedStorage } from "../../kit/disk.ts";
import { formatFinding } from "../../kit/finding.ts";
import { err, ok } from "../../kit/result.ts";
import { luksExecutors } from "../../luks/steps/driver.ts";
import type { Journal } from "../../provision/execute.ts";
import { execute } from "../../provision/execute.ts";
import { planStorage } from "../../provision/storage.ts";
import { raidExecutors } from "../../raid/driver.ts";
import type { Intent } from "../../state/model.ts";
import { mirror, plainDisk, storageDocument } from "../machines/machines.ts";
import type { FakeHost, FakeProgram } from "../support/fake-host.ts";
import { fakeHost } from "../support/fake-host.ts";
import { BlockMachine, filesOf, isWhole, superOf, write } from "./block-machine.ts";
import type { Subject } from "./crash-points.ts";
import { CUTS, survey } from "./crash-points.ts";
import { diskTools } from "./disk-tools.ts";
import { assemble, raidTools } from "./raid-tools.ts";
import { VolatileDisk } from "./volatile-disk.ts";

const MIB = 1024 ** 2;
const document = storageDocument({
  disks: [
    plainDisk({ name: "media", device: { serial: "C" }, filesystem: "xfs", mountPoint: "/srv/media" }),
    { name: "raw", device: { serial: "D" }, filesystem: "none", wipe: true },
  ],
  raid: [mirror({ wipe: true })],
});
const CONSENTED = ["A", "B", "C", "D"];

function disksOf(): readonly VolatileDisk[] {
  const disk = (serial: string, areas: Readonly<Record<string, unknown>> = {}): VolatileDisk => {
    const made = new VolatileDisk(serial, 512 * MIB);
    for (const [name, value] of Object.entries(areas)) made.put(name, value);
    return made;
  };
  const table = (name: string) => ({
    guid: "99999999-0000-4000-8000-000000000001",
    partitions: [
      {
        number: 1,
        startBytes: MIB,
        sizeBytes: 500 * MIB,
        type: "linux",
        uuid: "99999999-0000-4000-8000-000000000002",
        name,
      },
    ],
  });
  const old = (uuid: string) => ({ type: "ext4", run: -1, uuid, label: "OLD" });
  const partitioned = {
    "0:pmbr": true,
    "0:table": table("old"),
    "end:table": table("old"),
    [`${MIB}:super`]: old("a"),
    [`${MIB}:body`]: -1,
  };
  const member = {
    uuid: "aaaaaaaa:bbbbbbbb:cccccccc:dddddddd",
    name: "other:old",
    level: "raid1",
    role: 0,
    devices: 2,
  };
  return [
    disk("A", partitioned),
    disk("B", { "4096:md": member }),
    disk("C"),
    disk("D", { "0:super": old("d"), "0:body": -1 }),
    disk("BYSTANDER", { "0:super": old("e"), "0:body": -1 }),
    disk("BLANK"),
  ];
}

interface Sabotage {
  readonly machine?: (machine: BlockMachine) => void;
  readonly programs?: Readonly<Record<string, FakeProgram>>;
  readonly journal?: Partial<Journal>;
}

function subject(sabotage: Sabotage = {}, onCall?: () => void): Subject {
  const machine = new BlockMachine(disksOf());
  const host = fakeHost({
    ...(onCall === undefined ? {} : { onCall }),
    programs: { ...diskTools(machine), ...raidTools(machine), ...sabotage.programs },
    newUnits: (name) => (name.endsWith(".mount") ? { onStart: (fake) => mountUnit(machine, name, fake) } : {}),
  });
  sabotage.machine?.(machine);
  const intents = new Map<string, Intent>();
  const journal: Journal = {
    intents: () => [...intents.values()],
    open: (intent) => void intents.set(intent.stepId, intent),
    close: (stepId, closedAtMs) => {
      const intent = intents.get(stepId);
      if (intent !== undefined) intents.set(stepId, { ...intent, closedAtMs });
    },
  };
  let owned: readonly OwnedStorage[] = [];
  machine.publish(host);
  const untouched = machine.disks.filter(({ serial }) => !CONSENTED.includes(serial));
  const inventory = () => readInventory(host, { mode: "disk" });

  return {
    host,
    async run() {
      const found = await inventory();
      if (!found.ok) return formatError(found.error);
      const uuid = (): string => host.random.uuid();
      const plan = planStorage({ document, inventory: found.value, owned, intents: journal.intents(), uuid });
      const errors = plan.findings.filter(({ severity }) => severity === "error");
      if (errors.length > 0) return errors.map(formatFinding).join("\n");
      const done = await execute(
        plan.steps,
        { ...diskExecutors, ...raidExecutors, ...luksExecutors },
        {
          host,
          secrets: new Map(),
          journal: { ...journal, ...sabotage.journal },
          inventory,
        },
      );
      if (!done.ok) return formatError(done.error);
      // As bootstrap does: ours from the moment that all of it is there.
      owned = plan.owned;
      return undefined;
    },
    powerCut(remains) {
      machine.powerCut(remains);
      powerOn(host, machine);
    },
    violations: () => [
      ...machine.violations,
      ...untouched.filter(({ writes }) => writes > 0).map(({ serial }) => `disk ${serial} was written`),
    ],
    state: () =>
      inOrder(
        JSON.stringify(
          {
            visible: machine.visible(),
            mounts: machine.mounts.map(({ point, device }) => `${point} ${superOf(device)?.label}`).toSorted(),
            kept: host.paths("/var/lib/corium/etc").map((path) => [path, host.text(path)]),
            open: journal.intents().filter(({ closedAtMs }) => closedAtMs === undefined).length,
            owned: owned.map(({ name, uuid, filesystemUuid }) => [name, uuid, filesystemUuid]),
          },
          null,
          1,
        ),
      ),
    promises: () =>
      journal.intents().flatMap(({ stepId, step }) => {
        const { uuid } = step as { readonly uuid?: string };
        return uuid === undefined ? [] : [`${stepId} ${uuid}`];
      }),
    fingerprint: () =>
      JSON.stringify([machine.contents(), host.paths("/var/lib/corium"), host.paths("/etc"), journal.intents(), owned]),
  };
}

/** UUIDs and runs of mkfs by order of appearance: chosen anew in each try, yet the same everywhere. */
function inOrder(text: string): string {
  const names = new Map<string, string>();
  const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}(?::[0-9a-f]{8}){3}/g;
  return text
    .replaceAll("\\\\x2d", "-")
    .replace(/"run": \d+/g, '"run": 0')
    .replace(uuid, (found) => {
      const key = found.replace(/[-:]/g, "");
      names.set(key, names.get(key) ?? `uuid ${names.size + 1}`);
      return names.get(key) ?? "";
    });
}

/** systemd starts a mount; whoever waits for it puts data there at once. */
function mountUnit(machine: BlockMachine, unit: string, fake: FakeHost) {
  const text = fake.text(`/etc/systemd/system/${unit}`) ?? "";
  const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(text)?.[1] ?? "";
  const device = machine.find(setting("What"));
  if (device === undefined) return err(appError("systemd", `${setting("What")} is not there`));
  if (!isWhole(device)) return err(appError("systemd", `${device.path}: structure needs cleaning`));
  machine.mounts = [...machine.mounts, { device, point: setting("Where"), type: setting("Type"), aliases: [] }];
  const found = superOf(device);
  if (found !== undefined && filesOf(device, found).length === 0) {
    write(device, `file:${found.run}:/precious`, { value: "data" });
    for (const disk of device.disks) disk.flush();
  }
  return ok(undefined);
}

const wantsOf = (unit: string): string => `/etc/systemd/system/local-fs.target.wants/${unit}`;

/** corium-arrays.service starts the arrays on record, then systemd what is wanted. */
function powerOn(host: FakeHost, machine: BlockMachine): void {
  const { unitTable } = host;
  for (const unit of unitTable.values()) unit.isEnabled = false;
  host.boot();
  for (const path of host.paths("/etc/mdadm/mdadm.conf.d/")) {
    const uuid = /UUID=(\S+)/.exec(host.text(path) ?? "")?.[1];
    if (uuid !== undefined)
      assemble(
        machine,
        uuid,
        machine.devices().filter(({ type }) => type === "disk"),
      );
  }
  machine.publish(host);
  for (const [name, unit] of unitTable) {
    unit.isEnabled = host.node(wantsOf(name)) !== undefined;
    if (!unit.isEnabled || host.node(`/etc/systemd/system/${name}`) === undefined) continue;
    const fate = unit.onStart?.(host) ?? ok(undefined);
    Object.assign(
      unit,
      fate.ok ? { activeState: "active", subState: "running", mainPid: 1 } : { activeState: "failed" },
    );
  }
}

const lazy = (machine: BlockMachine): void => void (machine.isLazy = true);

test("power lost, a process killed or a call failed anywhere: the next run ends in the same node, no other disk was written", async () => {
  const { calls, deaths, flaws } = await survey((onCall) => subject({}, onCall));
  expect(flaws.slice(0, 5)).toEqual([]);
  expect(calls).toBeGreaterThan(200);
  expect(deaths).toBeGreaterThan(200);
}, 600_000);

test("the same with tools that leave flushing to us", async () => {
  const { flaws } = await survey((onCall) => subject({ machine: lazy }, onCall), { ways: CUTS });
  expect(flaws.slice(0, 5)).toEqual([]);
}, 600_000);

describe("the check can fail", () => {
  const controls: Readonly<Record<string, Sabotage & { readonly finds: RegExp }>> = {
    "a journal that forgets its intents": {
      journal: { open: () => undefined },
      finds: /holds data: (xfs|ext4|linux_raid)/,
    },
    "disks that ignore flushes": {
      machine: ({ disks }) => disks.forEach((disk) => (disk.isLying = true)),
      finds: /it is not as without/,
    },
    "lazy tools and a sync that does nothing": {
      machine: lazy,
      programs: { sync: () => "" },
      finds: /it is not as without/,
    },
  };
  test.each(Object.entries(controls))(
    "%s",
    async (_, { finds, ...sabotage }) => {
      const { flaws } = await survey((onCall) => subject(sabotage, onCall), { ways: CUTS, isControl: true });
      expect(flaws[0]?.problem).toMatch(finds);
    },
    600_000,
  );
});
