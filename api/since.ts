/** `90s`, `15m`, `2h`, `1d` ago, or ISO 8601 with its zone; milliseconds since 1970. */
export function parseSince(text: string, nowMs: number): number | undefined {
  const age = /^(\d{1,6})([smhd])$/.exec(text);
  if (age !== null) {
    const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[age[2] as "s" | "m" | "h" | "d"];
    return nowMs - Number(age[1]) * unitMs;
  }
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
