/**
 * One machine through its life as a node: an overlay of the installed disk, claimed as `node1` when it is first switched on,
 * cut and switched on again off the same disks.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeAnswer } from "../../../api/contract.ts";
import type { Operation } from "../../../state/model.ts";
import { until } from "../../support/until.ts";
import type { TestImage } from "./image.ts";
import { synchronizeClock } from "./inside.ts";
import { installedSystem } from "./installed.ts";
import { openOperator, type Operator } from "./node.ts";
import type { DiskOptions } from "./options.ts";
import type { Shell } from "./shell.ts";
import { freePort, startVm, type Vm } from "./vm.ts";

const BOOT_MS = 600_000;
const SERVICE_MS = 900_000;
const SLOW_MS = 600_000;

export interface OneNode {
  readonly operator: Operator;
  /** Of its API, on this machine; the same at each start: cctl knows the node by it. */
  readonly port: number;
  /** Throws while it is switched off. */
  readonly shell: Shell;
  /** Until it is in service; with a document it is claimed and given that one. */
  readonly switchOn: (document?: string) => Promise<NodeAnswer>;
  /** Power off at once: what it had not yet sent to its disks is lost. */
  readonly cut: () => Promise<void>;
  /** A document in the operator's folder: its path. */
  readonly file: (name: string, text: string) => string;
  /** The newest first. */
  readonly operations: () => Promise<readonly Operation[]>;
  /** As `until`, for as long as an emulated machine may take. */
  readonly until: <T>(what: string, look: () => Promise<T | undefined | false>) => Promise<T>;
  readonly close: () => Promise<void>;
}

/** It is not switched on yet. `disks`: beside the system's. */
export async function openOneNode(
  image: TestImage,
  { name, disks = [] }: { readonly name: string; readonly disks?: readonly DiskOptions[] },
): Promise<OneNode> {
  const operator = await openOperator();
  const directory = mkdtempSync(join(tmpdir(), `corium-${name}-`));
  const machine = {
    name,
    memoryMiB: 1536,
    cpus: 2,
    disks: [await installedSystem(image, directory), ...disks],
    forwards: [7443],
    hostPorts: { 7443: await freePort() },
  };
  let running: Vm | undefined;
  const vm = (): Vm => {
    if (running === undefined) throw new Error(`${name} is switched off, or did not come into service`);
    return running;
  };
  return {
    operator,
    port: machine.hostPorts[7443],
    get shell() {
      return vm().shell;
    },
    switchOn: async (document) => {
      running = await startVm(machine);
      // Nothing is typed on the shell's port before the console is up: GRUB would read it.
      if (document !== undefined) await operator.enroll(running, "node1", BOOT_MS, document);
      await running.shell.waitReady(BOOT_MS);
      await synchronizeClock(running.shell);
      return operator.waitInService("node1", SERVICE_MS);
    },
    cut: async () => {
      await vm().kill();
      await vm().stop();
      running = undefined;
    },
    file: (filename, text) => {
      const path = join(operator.directory, filename);
      writeFileSync(path, text);
      return path;
    },
    operations: async () => {
      const ran = await operator.cctl(["operations", "node1", "--output", "json"], 60_000);
      if (ran.exitCode !== 0) return [];
      return (JSON.parse(ran.stdout) as { readonly operations: readonly Operation[] }).operations;
    },
    until: (what, look) => until(what, look, { limitMs: SLOW_MS, everyMs: 500 }),
    close: async () => {
      await running?.stop();
      operator.dispose();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
