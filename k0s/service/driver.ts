/**
 * k0s as a running service: is it up, does it answer, and if not, why.
 *
 * It is driven through systemd only: `k0s start` and `k0s stop` refuse a failed unit and wait for nothing (facts:
 * section 2.2). `k0s status` may hang for minutes, so it always runs under a timeout.
 */
import { type AppError, appError, fail } from "../../kit/app-error.ts";
import type { ExecResult, Host, UnitStatus } from "../../kit/ports.ts";
import { err, ok, type Result } from "../../kit/result.ts";
import type { StepContext } from "../../kit/step.ts";
import { chartProgress, type ChartState, parseCharts } from "../charts.ts";
import type { K0sStatus } from "../model.ts";
import { parseStatus, parseVersion } from "../parse.ts";
import { K0S_BINARY, type K0sUnit } from "../paths.ts";
import { isTokenRefused, TOKEN_REFUSED, TOKEN_REFUSED_HINT } from "../refused-token.ts";

const PROBE_TIMEOUT_MS = 10_000;
const POLL_MS = 2_000;
/** Images are pulled and etcd may have to be joined before k0s answers. */
const READY_TIMEOUT_MS = 15 * 60_000;
const JOURNAL_LINES = 20;
/** A token may be known to one controller a moment later than to another. */
const REFUSED_MS = 60_000;

/** What an effect may use that only waits and reports. */
export type Waiting = Pick<StepContext, "host" | "report">;

export const service = (unit: K0sUnit): string => `${unit}.service`;

export const isUp = (status: UnitStatus): boolean =>
  status.activeState === "active" || status.activeState === "activating";

export const failureOf = (result: ExecResult): string => {
  if (result.failure !== undefined) return `${result.argv[0]} could not be run (${result.failure})`;
  if (result.timedOut) return `it gave no answer within ${Math.round(result.durationMs / 1000)} s`;
  return (
    result.stderr
      .trim()
      .split("\n")[0]
      ?.replace(/^Error: /, "") || `it exited with ${result.exitCode}`
  );
};

/** Why k0s gave up is among its last lines; further up there may be what an earlier token met. */
const LAST_LINES = 5;

/** A failure of the unit, with what its journal says last. `isJoining`: by a token, which the cluster may refuse. */
export async function looped(
  host: Host,
  unit: K0sUnit,
  status: UnitStatus,
  isJoining = false,
): Promise<Result<never, AppError>> {
  const tail = await host.systemd.journalTail(service(unit), JOURNAL_LINES);
  if (isJoining && tail.ok && isTokenRefused(tail.value.slice(-LAST_LINES))) {
    return fail("join-refused", TOKEN_REFUSED, { details: tail.value, hint: TOKEN_REFUSED_HINT });
  }
  const how = status.activeState === "failed" ? `failed (${status.result})` : "stops and is restarted again and again";
  return err(
    appError("k0s-fails", `${unit} ${how}`, {
      details: tail.ok ? tail.value : [],
      hint: `the last lines of its journal are above; 'cctl logs ${unit}' has the rest`,
    }),
  );
}

export interface Wait {
  /** Completes "waiting for …". */
  readonly what: string;
  readonly timeoutMs: number;
  /** Its journal's tail is told when the time is over. */
  readonly unit?: K0sUnit;
  /** `undefined` when it is there, else why not yet, in words; an error ends the wait. */
  readonly probe: () => Promise<Result<string | undefined, AppError>>;
}

export async function waitFor(context: Waiting, wait: Wait): Promise<Result<void, AppError>> {
  const { clock } = context.host;
  const until = clock.monotonicMs() + wait.timeoutMs;
  for (;;) {
    const state = await wait.probe();
    if (!state.ok) return state;
    if (state.value === undefined) return ok(undefined);
    context.report(`waiting for ${wait.what}: ${state.value}`);
    if (clock.monotonicMs() >= until) {
      const minutes = Math.max(1, Math.round(wait.timeoutMs / 60_000));
      const tail =
        wait.unit === undefined ? ok([]) : await context.host.systemd.journalTail(service(wait.unit), JOURNAL_LINES);
      return fail("timeout", `waited ${minutes} min for ${wait.what}: ${state.value}`, {
        details: tail.ok ? tail.value : [],
      });
    }
    await clock.sleep(POLL_MS);
  }
}

/** `k0s status` under a timeout. An error says why there is none, which may only mean "not yet". */
export async function readStatus(host: Host): Promise<Result<K0sStatus, AppError>> {
  const result = await host.exec({ argv: [K0S_BINARY, "status", "-o", "json"], timeoutMs: PROBE_TIMEOUT_MS });
  if (result.exitCode !== 0) return fail("k0s-silent", `k0s status: ${failureOf(result)}`);
  return parseStatus(result.stdout);
}

export async function readVersion(host: Host): Promise<Result<string, AppError>> {
  const result = await host.exec({ argv: [K0S_BINARY, "version"], timeoutMs: PROBE_TIMEOUT_MS });
  if (result.exitCode !== 0) return fail("k0s-version", `k0s version: ${failureOf(result)}`);
  return parseVersion(result.stdout);
}

/** Why k0s does not answer yet; `undefined` when status and API do. */
export async function whatIsMissing(host: Host): Promise<string | undefined> {
  const status = await readStatus(host);
  if (!status.ok) return status.error.message;
  if (status.value.role === "worker") {
    if (status.value.isConnected === true) return undefined;
    return `the kubelet has not reached an API server (${status.value.connectionMessage ?? "no reason given"})`;
  }
  const api = await host.exec({
    argv: [K0S_BINARY, "kubectl", "get", "--raw", "/readyz"],
    timeoutMs: PROBE_TIMEOUT_MS,
  });
  return api.exitCode === 0 ? undefined : `the API server is not ready: ${failureOf(api)}`;
}

/** Waits until k0s answers: its unit stays up, then its status, then the API. Says what it waits for. */
export async function waitUntilReady(
  context: Waiting,
  options: { readonly unit: K0sUnit; readonly timeoutMs?: number; readonly isJoining?: boolean },
): Promise<Result<void, AppError>> {
  const { host } = context;
  const { unit } = options;
  const first = await host.systemd.status(service(unit));
  if (!first.ok) return first;
  const token = options.isJoining === true ? await watchToken(host, unit) : undefined;
  return waitFor(context, {
    what: "k0s to answer",
    unit,
    timeoutMs: options.timeoutMs ?? READY_TIMEOUT_MS,
    probe: async () => {
      const now = await host.systemd.status(service(unit));
      if (!now.ok) return now;
      const refusal = await token?.();
      if (refusal?.ok === false) return refusal;
      const isFailing = now.value.activeState === "failed" || now.value.restarts > first.value.restarts;
      // A refused token makes some versions of k0s loop, and others try for ever.
      if (isFailing && refusal === undefined) return looped(host, unit, now.value, options.isJoining);
      if (!isUp(now.value)) return ok(`${unit} is ${now.value.activeState}`);
      const missing = await whatIsMissing(host);
      return ok(missing === undefined ? undefined : (refusal?.value ?? missing));
    },
  });
}

/** Each call: whether the journal has a refusal that was not there at first; an error when it goes on for a minute. */
async function watchToken(host: Host, unit: K0sUnit): Promise<() => Promise<Result<string, AppError> | undefined>> {
  const tail = async (): Promise<readonly string[]> => {
    const lines = await host.systemd.journalTail(service(unit), JOURNAL_LINES);
    return lines.ok ? lines.value : [];
  };
  const before = await tail();
  let sinceMs: number | undefined;
  return async () => {
    const journal = await tail();
    if (!isTokenRefused(journal, before)) return undefined;
    sinceMs ??= host.clock.monotonicMs();
    if (host.clock.monotonicMs() - sinceMs < REFUSED_MS) return ok(TOKEN_REFUSED);
    return fail("join-refused", TOKEN_REFUSED, { details: journal, hint: TOKEN_REFUSED_HINT });
  };
}

/** Stops and starts it with the files that are there now, and waits until it answers. */
export async function restartAndWait(
  context: Waiting,
  options: { readonly unit: K0sUnit; readonly timeoutMs?: number },
): Promise<Result<void, AppError>> {
  const { systemd } = context.host;
  const before = await systemd.status(service(options.unit));
  if (!before.ok) return before;
  if (before.value.activeState === "failed") {
    const reset = await systemd.resetFailed(service(options.unit));
    if (!reset.ok) return reset;
  }
  context.report(`restarting ${options.unit}`);
  const restarted = await systemd.restart(service(options.unit));
  if (!restarted.ok) return restarted;
  return waitUntilReady(context, options);
}

/** Helm's own timeout is ten minutes; it may have to try twice. */
const CHARTS_TIMEOUT_MS = 12 * 60_000;
/** A repository may be out of reach for a moment, and k0s tries again by itself. */
const CHART_ERROR_MS = 60_000;

/** Every chart by name; empty while the API does not know of charts yet. */
export async function readCharts(host: Host): Promise<Result<ReadonlyMap<string, ChartState>, AppError>> {
  const argv = [K0S_BINARY, "kubectl", "get", "charts.helm.k0sproject.io", "-n", "kube-system", "-o", "json"];
  const result = await host.exec({ argv, timeoutMs: PROBE_TIMEOUT_MS });
  if (result.exitCode !== 0) return fail("charts", `k0s kubectl get charts: ${failureOf(result)}`);
  const charts = parseCharts(result.stdout);
  return charts === undefined ? fail("charts", "k0s kubectl get charts printed something else") : ok(charts);
}

/** Waits until helm is through with each of them; the first that keeps failing is the error, in helm's words. */
export async function waitForCharts(
  context: Waiting,
  wanted: { readonly names: readonly string[]; readonly before: ReadonlyMap<string, ChartState> },
): Promise<Result<void, AppError>> {
  const { host } = context;
  const failingSince = new Map<string, number>();
  return waitFor(context, {
    what: `helm to release ${wanted.names.join(", ")}`,
    timeoutMs: CHARTS_TIMEOUT_MS,
    probe: async () => {
      const charts = await readCharts(host);
      if (!charts.ok) return ok(charts.error.message);
      const open: string[] = [];
      for (const name of wanted.names) {
        const progress = chartProgress(wanted.before.get(name), charts.value.get(name));
        if (progress.is !== "failing") failingSince.delete(name);
        if (progress.is === "pending") open.push(`${name} is pending`);
        if (progress.is !== "failing") continue;
        const since = failingSince.get(name) ?? host.clock.monotonicMs();
        failingSince.set(name, since);
        if (host.clock.monotonicMs() - since >= CHART_ERROR_MS) {
          return fail("chart-failed", `chart ${name} fails: ${progress.error}`, {
            hint: "the document is applied and nothing was undone; correct the add-on and apply again",
          });
        }
        open.push(`${name} fails (${progress.error})`);
      }
      return ok(open.length === 0 ? undefined : open.join(", "));
    },
  });
}
