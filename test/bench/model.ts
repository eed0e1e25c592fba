/** What a bench is: ratios within one run say more than times, which are those of a machine. */
export interface Bench {
  /** `bun run bench NAME` runs it alone. */
  readonly name: string;
  /** What is measured against what, in a sentence. */
  readonly title: string;
  /** A line for each figure. */
  run(): Promise<readonly string[]>;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Wall-clock milliseconds of each, taken in turns, so that what disturbs the machine disturbs them alike. */
export function inTurns(rounds: number, works: readonly (() => void)[]): readonly (readonly number[])[] {
  const times = works.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [index, work] of works.entries()) {
      const began = performance.now();
      work();
      times[index]?.push(performance.now() - began);
    }
  }
  return times;
}
