import type { Clock } from "../kit/ports.ts";

/**
 * What the machine is, for showing only: no decision may come from here (systeminformation knows no layout of virtio
 * disks and guesses where it does not know). Loaded when first asked: it costs forty milliseconds.
 */
export interface Hardware {
  readonly manufacturer?: string;
  readonly model?: string;
  readonly serial?: string;
  readonly cpu?: string;
  readonly cores?: number;
  readonly memoryBytes?: number;
}

export function hardwareReader(clock: Pick<Clock, "monotonicMs">): () => Promise<Hardware | undefined> {
  let asked: Promise<Hardware> | undefined;
  const bornMs = clock.monotonicMs();
  return async () => {
    // It starts two dozen programs, and a machine that boots has better things to do.
    if (asked === undefined && clock.monotonicMs() - bornMs < REST_MS) return undefined;
    return (asked ??= readHardware());
  };
}

const REST_MS = 60_000;

async function readHardware(): Promise<Hardware> {
  const { system, cpu, mem } = await import("systeminformation");
  const [machine, processor, memory] = await Promise.all([system(), cpu(), mem()]);
  const known = (text: string): string | undefined => {
    const trimmed = text.trim();
    // What makers leave in the fields, and the library's own placeholders.
    return /^(|-|n\/a|none|default string|not specified|to be filled by o\.e\.m\.)$/i.test(trimmed)
      ? undefined
      : trimmed;
  };
  const parts = {
    manufacturer: known(machine.manufacturer),
    model: known(machine.model),
    serial: known(machine.serial),
    cpu: known(`${processor.manufacturer} ${processor.brand}`),
    cores: processor.cores > 0 ? processor.cores : undefined,
    memoryBytes: memory.total > 0 ? memory.total : undefined,
  };
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
}
