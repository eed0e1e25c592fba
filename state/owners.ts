import { readFileSync } from "node:fs";

/** Which process runs an operation, in a form that no later process or boot can be mistaken for. */
export interface Owners {
  readonly self: string;
  isAlive(owner: string): boolean;
}

/** Of this boot of the kernel. */
export function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** boot id, pid, and the start time of that pid: field 22 of proc_pid_stat(5), since pids are used again. */
export function processOwners(bootId: string): Owners {
  const nameOf = (pid: number): string | undefined => {
    const started = startTimeOf(pid);
    return started === undefined ? undefined : `${bootId} ${pid} ${started}`;
  };
  return {
    self: nameOf(process.pid) ?? `${bootId} ${process.pid} 0`,
    isAlive: (owner) => {
      const pid = Number(owner.split(" ")[1]);
      return Number.isInteger(pid) && nameOf(pid) === owner;
    },
  };
}

function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name stands in parentheses and may hold spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields[0];
    return state === "Z" || state === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
