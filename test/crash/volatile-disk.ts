/**
 * A disk with a volatile cache, as far as a crash can tell: what was written is durable only once it had reached the disk
 * and the disk was flushed after that. Content is kept by named areas, not bytes: `0:table`, `1048576:super`.
 */

/** What is left of a write that power cut short; of an area that can't be cut, nothing or all. */
export type Remains = "lost" | "kept" | "torn";

export interface Area {
  readonly value: unknown;
  /** What a reader finds when only a part of it was written; absent: one sector, there or not. */
  readonly torn?: unknown;
}

interface Write extends Area {
  readonly name: string;
  /** In the disk's own cache; before that in the page cache of the machine, where no flush of the disk finds it. */
  isOnDisk: boolean;
  /** Whose pages they are: a file, a mounted filesystem. */
  readonly owner?: string;
}

export class VolatileDisk {
  readonly serial: string;
  readonly sizeBytes: number;
  /** Says yes to a flush and does nothing, as some disks do: the control that must be found out. */
  isLying = false;
  #durable = new Map<string, unknown>();
  #cached: Write[] = [];
  #writes = 0;

  constructor(serial: string, sizeBytes: number) {
    this.serial = serial;
    this.sizeBytes = sizeBytes;
  }

  /** Requests that it ever got. */
  get writes(): number {
    return this.#writes;
  }

  read(name: string): unknown {
    const cached = this.#cached.findLast((write) => write.name === name);
    return (cached === undefined ? this.#durable.get(name) : cached.value) ?? undefined;
  }

  /** Names of all areas that hold something. */
  names(): readonly string[] {
    const all = new Set([...this.#durable.keys(), ...this.#cached.map(({ name }) => name)]);
    return [...all].filter((name) => this.read(name) !== undefined).toSorted();
  }

  /** `null` clears. With an owner it waits in the page cache until `writeBack`. */
  write(name: string, area: Area, owner?: string): void {
    this.#writes += 1;
    this.#cached.push({ name, ...area, isOnDisk: owner === undefined, ...(owner === undefined ? {} : { owner }) });
  }

  /** The pages of this owner go to the disk; that alone makes nothing durable. */
  writeBack(owner: string): void {
    for (const write of this.#cached) if (write.owner === owner) write.isOnDisk = true;
  }

  /** The disk's FLUSH command. */
  flush(): void {
    if (this.isLying) return;
    const left: Write[] = [];
    for (const write of this.#cached) {
      if (write.isOnDisk) this.#durable.set(write.name, write.value);
      else left.push(write);
    }
    this.#cached = left;
  }

  powerCut(remains: () => Remains): void {
    for (const write of this.#cached) {
      const fate = remains();
      if (fate === "lost") continue;
      if (fate === "torn" && write.torn === undefined) continue;
      this.#durable.set(write.name, fate === "torn" ? write.torn : write.value);
    }
    this.#cached = [];
  }

  /** As it came from the shop, or from another machine. */
  put(name: string, value: unknown): void {
    this.#durable.set(name, value);
  }

  /** All that the next boot can depend on. */
  contents(): unknown {
    return [[...this.#durable], this.#cached];
  }
}
