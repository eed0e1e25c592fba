const UNIT_MS = { h: 3_600_000, m: 60_000, s: 1000 } as const;

/** `90s`, `15m`, `1m30s`, `1h`: whole numbers, units in falling order. Milliseconds. */
export function parseDuration(text: string): number | undefined {
  const match = /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/.exec(text);
  if (match === null || text === "") return undefined;
  const [, hours, minutes, seconds] = match;
  return Number(hours ?? 0) * UNIT_MS.h + Number(minutes ?? 0) * UNIT_MS.m + Number(seconds ?? 0) * UNIT_MS.s;
}
