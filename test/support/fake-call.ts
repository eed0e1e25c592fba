/** One call of a port of a fake machine: counted, recorded, and the place where power is lost or a disk fails. */
export type Call = <T>(name: string, work: () => T | Promise<T>, failure?: () => T) => Promise<T>;

/** Power was lost. Thrown, because no code may handle it. */
export class MachineDied extends Error {
  constructor(call: string) {
    super(`power lost at ${call}`);
  }
}

/** What happens to a call: power goes before it, in the middle of it or after it; or it fails with no effect. */
export type Fate = "before" | "during" | "after" | "fails";

export interface Calls {
  readonly call: Call;
  readonly names: readonly string[];
  readonly isDead: boolean;
  /** Power is about to go in the middle of this very call: programs leave their work unfinished. */
  readonly isTearing: boolean;
  /** The `count`-th call from now. */
  fateAt(count: number, fate: Fate): void;
  revive(): void;
}

export function countCalls(onCall?: () => void): Calls {
  const names: string[] = [];
  let coming: { count: number; readonly fate: Fate } | undefined;
  let isDead = false;
  let isTearing = false;
  const die = (name: string): never => {
    isDead = true;
    throw new MachineDied(name);
  };
  return {
    names,
    get isDead() {
      return isDead;
    },
    get isTearing() {
      return isTearing;
    },
    fateAt: (count, fate) => {
      coming = { count, fate };
    },
    revive: () => {
      isDead = false;
      isTearing = false;
      coming = undefined;
    },
    async call(name, work, failure) {
      if (isDead) throw new MachineDied(name);
      onCall?.();
      names.push(name);
      if (coming !== undefined) coming.count -= 1;
      const fate = coming?.count === 0 ? coming.fate : undefined;
      if (fate === "before") die(name);
      await Promise.resolve();
      if (fate === "fails" && failure !== undefined) return failure();
      isTearing = fate === "during";
      const result = await work();
      isTearing = false;
      if (fate === "after" || fate === "during") die(name);
      return result;
    },
  };
}
