/** Says 60, 30 and 7 days before a certificate ends, and when it has, once each. */
import type { Host } from "../kit/ports.ts";
import type { EventRecord } from "../state/model.ts";
import type { State } from "../state/open.ts";
import { type CertificateEnd, DAY_MS, tellEnds } from "./certificates.ts";

export interface CertificateWatch {
  readonly host: Host;
  readonly state: Pick<State, "events" | "meta">;
  readonly read: () => Promise<readonly CertificateEnd[]>;
  readonly say: (line: string) => void;
}

/** Of a certificate: its end, and the smallest of the thresholds that was told. Another end is another certificate. */
export type ToldEnds = Readonly<Record<string, readonly [notAfterMs: number, days: number]>>;

export interface CertificateDecision {
  readonly told: ToldEnds;
  readonly events: readonly Pick<EventRecord, "kind" | "severity" | "message">[];
}

const THRESHOLDS = [0, 7, 30, 60] as const;
/** The kubelet's are renewed in the last third of their year: at 60 days that is no news. */
const KUBELET_THRESHOLDS = [0, 7, 30] as const;
const POLL_MS = 60 * 60_000;
/** k0s renews what has ended when it starts: what a machine that was off for a year has then is not worth an event. */
const BOOT_MS = 15 * 60_000;

/** Pure. Only the nearest threshold is told: a machine that was off hears of a certificate once, not three times. */
export function decideCertificates(
  told: ToldEnds,
  ends: readonly CertificateEnd[],
  nowMs: number,
): CertificateDecision {
  const next: Record<string, readonly [number, number]> = {};
  const due = new Map<number, CertificateEnd[]>();
  for (const end of ends.filter(({ kind }) => kind !== "api")) {
    const thresholds = end.kind === "kubelet" ? KUBELET_THRESHOLDS : THRESHOLDS;
    const reached = thresholds.find((days) => end.notAfterMs - nowMs < days * DAY_MS || end.notAfterMs <= nowMs);
    const before = told[end.name];
    const isKnown = before?.[0] === end.notAfterMs;
    if (reached === undefined) continue;
    next[end.name] = [end.notAfterMs, Math.min(reached, isKnown ? before[1] : reached)];
    if (!isKnown || reached < before[1]) due.set(reached, [...(due.get(reached) ?? []), end]);
  }
  const events = [...due].flatMap(([days, of]) =>
    tellEnds(of, nowMs).map((sentence) => ({
      kind: "certificate",
      severity: days <= 7 ? ("error" as const) : ("warning" as const),
      message: `certificate ${sentence}`,
    })),
  );
  return { told: next, events };
}

/** Until the signal. What fails is said and tried again at the next look. */
export async function watchCertificates(watch: CertificateWatch, signal: AbortSignal): Promise<void> {
  const { host, say } = watch;
  await host.clock.sleep(Math.max(0, BOOT_MS - host.clock.monotonicMs()), signal);
  while (!signal.aborted) {
    try {
      await look(watch);
    } catch (thrown) {
      say(`certificates could not be watched: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
    await host.clock.sleep(POLL_MS, signal);
  }
}

async function look({ host, state, read }: CertificateWatch): Promise<void> {
  const atMs = host.clock.nowMs();
  const before = state.meta.get("told-certificates") ?? "{}";
  const { told, events } = decideCertificates(JSON.parse(before) as ToldEnds, await read(), atMs);
  for (const event of events) state.events.add({ atMs, ...event });
  const after = JSON.stringify(told);
  if (after !== before) state.meta.set("told-certificates", after);
}
