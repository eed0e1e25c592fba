/** A machine with arrays of every level on sixteen disks of all kinds, and what can be seen of them from outside. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "bun:test";
import type { NodeAnswer } from "../../../api/contract.ts";
import type { EventRecord } from "../../../state/model.ts";
import { createRaw } from "./disk.ts";
import type { TestImage } from "./image.ts";
import { synchronizeClock } from "./inside.ts";
import { installedSystem } from "./installed.ts";
import type { Operator } from "./node.ts";
import type { DiskOptions } from "./options.ts";
import { freePort, startVm, type Vm } from "./vm.ts";

export type ArrayAnswer = NodeAnswer["storage"]["arrays"][number];

export const ARRAYS = ["stripe", "mirror", "parity", "double", "tens"] as const;

/** Hang limits: an emulated machine beside others has little of a processor. */
const LIMIT_MS = 600_000;

export interface ArrayMachine {
  /** Of the running machine. */
  readonly vm: Vm;
  readonly document: string;
  readonly data: readonly DiskOptions[];
  /** Of nobody, until it takes the place of another. */
  readonly fresh: DiskOptions;
  /** As cctl calls the node. */
  readonly node: string;
  /** Kernel names follow the order of the disks. A second installation has a system disk of its own. */
  start(name: string, disks: readonly DiskOptions[], installation?: "first" | "second"): Promise<Vm>;
  /** Switched off as by its button. */
  switchOff(): Promise<void>;
  /** Claimed with this document, in service, every array whole. */
  enter(document: string): Promise<void>;
  /** Until the array is as asked; its last state is in the failure. */
  waitArray(name: string, isSo: (array: ArrayAnswer) => boolean): Promise<ArrayAnswer>;
  events(): Promise<readonly EventRecord[]>;
  /** The event of this kind that says this. */
  waitEvent(kind: string, says: RegExp): Promise<EventRecord>;
  /** Fills each array, and remembers with what. */
  write(): Promise<void>;
  /** Each is mounted, and holds what was written. */
  expectContent(): Promise<void>;
  dispose(): Promise<void>;
}

export const isWhole = (each: ArrayAnswer): boolean => each.state === "healthy" && each.active === each.expected;

export const stateOf = (each: ArrayAnswer, serial: string): string | undefined =>
  each.members?.find((member) => member.serial === serial)?.state;

export async function arrayMachine(image: TestImage, operator: Operator): Promise<ArrayMachine> {
  const directory = mkdtempSync(join(tmpdir(), "corium-raid-"));
  const { data, fresh } = makeDisks(directory);
  // cctl knows a node by its address: the same at each start of one installation.
  const systems = {
    first: { disk: await installedSystem(image, join(directory, "first")), port: await freePort(), node: "node1" },
    second: { disk: await installedSystem(image, join(directory, "second")), port: await freePort(), node: "again" },
  };
  let { node } = systems.first;
  let started: Vm | undefined;
  let written = "";
  const vm = (): Vm => {
    if (started === undefined) throw new Error("the machine was not started");
    return started;
  };
  const arrays = async (): Promise<readonly ArrayAnswer[]> => (await operator.status(node))?.storage.arrays ?? [];
  const digests = (): Promise<string> =>
    vm().shell.must(
      `for name in ${ARRAYS.join(" ")}; do
         mountpoint -q /srv/$name || echo "$name is not mounted"
         sha256sum /srv/$name/content
       done`,
      LIMIT_MS,
    );
  const until = async <T>(look: () => Promise<T | undefined>, failure: () => Promise<string>): Promise<T> => {
    const deadline = performance.now() + LIMIT_MS;
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new Error(await failure());
      await Bun.sleep(1000);
    }
  };
  const machine: ArrayMachine = {
    get vm() {
      return vm();
    },
    get node() {
      return node;
    },
    document: documentOf(data),
    data,
    fresh,
    start: async (name, disks, installation = "first") => {
      await started?.stop();
      const system = systems[installation];
      ({ node } = system);
      started = await startVm({
        name,
        memoryMiB: 1536,
        cpus: 2,
        disks: [system.disk, ...disks],
        forwards: [7443],
        hostPorts: { 7443: system.port },
      });
      await started.shell.waitReady(LIMIT_MS);
      return started;
    },
    switchOff: async () => {
      await vm().powerdown();
      await vm().waitExit(LIMIT_MS);
    },
    enter: async (document) => {
      await synchronizeClock(vm().shell);
      await operator.enroll(vm(), node, LIMIT_MS, document);
      await operator.waitInService(node, 3 * LIMIT_MS);
      for (const name of ARRAYS) await machine.waitArray(name, isWhole);
    },
    waitArray: (name, isSo) =>
      until(
        async () => (await arrays()).find((each) => each.name === name && isSo(each)),
        async () => `array ${name}: ${JSON.stringify((await arrays()).find((each) => each.name === name))}`,
      ),
    events: async () => {
      const text = await operator.must(["events", node, "--output", "json"], 120_000);
      const lines = text.split("\n").filter((line) => line.startsWith("{"));
      return lines.map((line) => JSON.parse(line) as EventRecord);
    },
    waitEvent: (kind, says) =>
      until(
        async () => {
          // One answer that is late is no failure: the next one comes.
          const all = await machine.events().catch(() => []);
          return all.find((event) => event.kind === kind && says.test(event.message));
        },
        async () => {
          const said = (await machine.events()).map((event) => `${event.kind}: ${event.message}`);
          return `no event ${kind} ${String(says)}:\n${said.join("\n")}`;
        },
      ),
    write: async () => {
      await vm().shell.must(
        `for name in ${ARRAYS.join(" ")}; do head -c 8000000 /dev/urandom >/srv/$name/content; done; sync`,
        LIMIT_MS,
      );
      written = await digests();
      expect(written).not.toContain("not mounted");
    },
    expectContent: async () => {
      expect(await digests()).toBe(written);
    },
    dispose: async () => {
      await started?.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return machine;
}

function makeDisks(directory: string): Pick<ArrayMachine, "data" | "fresh"> {
  const disk = (serial: string, more: Partial<DiskOptions> = {}): DiskOptions => ({
    serial,
    path: createRaw(join(directory, `${serial}.raw`), 96),
    ...more,
  });
  const scsi = { bus: "scsi" } as const;
  const large = { sectorBytes: 4096 } as const;
  return {
    data: [
      disk("stripe-a"),
      disk("stripe-b", { bus: "nvme" }),
      disk("mirror-a", scsi),
      disk("mirror-b", { bus: "nvme", isPullable: true }),
      disk("mirror-spare"),
      disk("parity-a", scsi),
      disk("parity-b", { isPullable: true }),
      disk("parity-c", scsi),
      disk("double-a", scsi),
      disk("double-b"),
      disk("double-c", scsi),
      disk("double-d"),
      disk("tens-a", { ...scsi, ...large }),
      disk("tens-b", large),
      disk("tens-c", { ...scsi, ...large }),
      disk("tens-d", large),
    ],
    fresh: disk("fresh", scsi),
  };
}

function documentOf(data: readonly DiskOptions[]): string {
  const array = (name: string, level: number): string => {
    const own = data.filter(({ serial }) => serial.startsWith(`${name}-`));
    const list = (isSpare: boolean): string =>
      own.flatMap(({ serial }) => (serial.endsWith("-spare") === isSpare ? [`{ serial: ${serial} }`] : [])).join(", ");
    return `  - name: ${name}
    level: ${level}
    devices: [${list(false)}]
    spares: [${list(true)}]
    mountPoint: /srv/${name}
    wipe: true
`;
  };
  return `role: single
cluster: { name: demo }
node: { name: node1 }
api: { enabled: true }
raid:
${array("stripe", 0)}${array("mirror", 1)}${array("parity", 5)}${array("double", 6)}${array("tens", 10)}`;
}
