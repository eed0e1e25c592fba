/**
 * A machine as its tools showed it. A fixture is what they printed; `readInventory` and its parsers make of it what
 * they would make of the machine, so that nothing stands between a capture and the planner.
 */
import { readInventory } from "../../disks/driver.ts";
import type { Inventory } from "../../kit/disk.ts";
import type { BootFacts } from "../../kit/paths.ts";
import type { ExecRequest, ExecResult } from "../../kit/ports.ts";
import type { FakeHost } from "../support/fake-host.ts";
import { fakeHost } from "../support/fake-host.ts";

/** Text output of a program, by lines, and its exit status where that is not 0. */
export interface Printed {
  readonly exitCode?: number;
  /** It died of it. */
  readonly signal?: string;
  readonly lines?: readonly string[];
}

export interface RecordedMachine {
  /** What is odd about it. */
  readonly about: string;
  /** Where each part comes from: captured on which system, or described by hand. */
  readonly origin: string;
  readonly boot?: BootFacts;
  /** `lsblk --json -b -O`, cut down to the columns that say something. */
  readonly lsblk: { readonly blockdevices: readonly unknown[] };
  /** `wipefs -J DEVICE`: its list of signatures. A device that is not here shows none. */
  readonly wipefs?: Readonly<Record<string, readonly unknown[]>>;
  /** `blkid -p -o export DEVICE`. A device that is not here shows nothing (exit status 2). */
  readonly blkid?: Readonly<Record<string, Printed>>;
  /** `udevadm info --query=property --name=DEVICE`. */
  readonly udev?: Readonly<Record<string, readonly string[]>>;
  /** `mdadm --examine --export DEVICE`. A device that is not here has no superblock (exit status 1). */
  readonly examineExport?: Readonly<Record<string, Printed>>;
  /** `mdadm --examine DEVICE`. */
  readonly examine?: Readonly<Record<string, Printed>>;
  /** `blkid -p -O START -o export DEVICE`: what stands inside an array that is not running. */
  readonly inside?: Readonly<Record<string, Printed>>;
  /** Kernel name → /sys/class/block/NAME/holders. */
  readonly holders?: Readonly<Record<string, readonly string[]>>;
  /** Kernel name → /sys/class/block/NAME/dm. */
  readonly mappings?: Readonly<Record<string, { readonly name: string; readonly uuid: string }>>;
  /** From /proc: who has a device open. */
  readonly openers?: readonly { readonly pid: number; readonly program: string; readonly device: string }[];
  /** Device → what wipefs says when it can't read it. */
  readonly unreadable?: Readonly<Record<string, string>>;
}

type Answer = Partial<ExecResult>;

const printed = (found: Printed | undefined, absentExitCode: number): Answer =>
  found === undefined
    ? { exitCode: absentExitCode }
    : found.signal !== undefined
      ? { exitCode: null, signal: found.signal }
      : { exitCode: found.exitCode ?? 0, stdout: (found.lines ?? []).map((line) => `${line}\n`).join("") };

/** The disks of that machine, read by the code that reads them on a node. */
export async function replay(recorded: RecordedMachine): Promise<Inventory> {
  const read = await readInventory(replayHost(recorded), recorded.boot ?? { mode: "disk" });
  if (!read.ok) throw new Error(`${recorded.about}: ${read.error.message}`);
  return read.value;
}

/** Answers as that machine's tools did. */
export function replayHost(recorded: RecordedMachine): FakeHost {
  const device = ({ argv }: ExecRequest): string => (argv.at(-1) ?? "").replace(/^--name=/, "");
  const host = fakeHost({
    programs: {
      lsblk: () => JSON.stringify(recorded.lsblk),
      udevadm: (request) => {
        if (request.argv[1] === "settle") return "";
        const lines = recorded.udev?.[device(request)];
        return printed(lines === undefined ? undefined : { lines }, 1);
      },
      wipefs: (request) => {
        const complaint = recorded.unreadable?.[device(request)];
        if (complaint !== undefined) return { exitCode: 1, stderr: `${complaint}\n` };
        return JSON.stringify({ signatures: recorded.wipefs?.[device(request)] ?? [] });
      },
      blkid: (request) =>
        printed((request.argv.includes("-O") ? recorded.inside : recorded.blkid)?.[device(request)], 2),
      mdadm: (request) =>
        printed((request.argv.includes("--export") ? recorded.examineExport : recorded.examine)?.[device(request)], 1),
    },
  });
  for (const [name, holders] of Object.entries(recorded.holders ?? {})) {
    host.put(`/sys/class/block/${name}/holders`, "", { kind: "directory" });
    for (const holder of holders) host.put(`/sys/class/block/${name}/holders/${holder}`, "");
  }
  for (const [kernelName, { name, uuid }] of Object.entries(recorded.mappings ?? {})) {
    host.put(`/sys/class/block/${kernelName}/dm/name`, `${name}\n`);
    host.put(`/sys/class/block/${kernelName}/dm/uuid`, `${uuid}\n`);
  }
  for (const [at, { pid, program, device: target }] of (recorded.openers ?? []).entries()) {
    host.put(`/proc/${pid}/comm`, `${program}\n`);
    host.put(`/proc/${pid}/fd/${at + 3}`, "", { kind: "symlink", target });
  }
  const medium = recorded.boot?.medium?.device;
  if (medium !== undefined) host.put(medium, "", { kind: "block" });
  return host;
}
