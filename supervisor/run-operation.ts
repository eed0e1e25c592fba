/** One operation of bootstrap: begun or gone on with, its steps and messages recorded, its end told to everybody. */
import type { AppError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import type { Executors, StepBase } from "../kit/step.ts";
import type { Secret } from "../kit/secret.ts";
import type { Intent, OperationStep } from "../state/model.ts";
import type { State } from "../state/open.ts";
import type { BootstrapServices, FoundDocument } from "./bootstrap-services.ts";
import { fail, formatError } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import { execute } from "../provision/execute.ts";

const pollMs = 1_000;

/** A failure, and the operation that it is the end of, if one was begun. */
export type Outcome =
  { readonly ok: true } | { readonly ok: false; readonly error: AppError; readonly operation?: string };

export const failed = (error: AppError, operation?: string): Outcome => ({
  ok: false,
  error,
  ...(operation === undefined ? {} : { operation }),
});

/** The exit status, once everybody was told. */
export async function concluded(services: BootstrapServices, outcome: Outcome): Promise<number> {
  if (!outcome.ok) failOperation(services, outcome.operation, outcome.error);
  await services.reporter.flush();
  return outcome.ok ? 0 : 1;
}

/** After a power cut the same operation goes on: bootstrap ran once. */
export async function beginOperation(
  services: BootstrapServices,
  kind: "bootstrap" | "install",
): Promise<Result<string, AppError>> {
  const { host, state, reporter, version, signal } = services;
  for (;;) {
    const atMs = host.clock.nowMs();
    const abandoned = state.operations.abandoned().find((operation) => operation.kind === kind);
    if (abandoned !== undefined) {
      state.operations.adopt(abandoned.id, atMs);
      return ok(abandoned.id);
    }
    const begun = state.operations.begin({ kind, requester: { kind: "document" }, version, atMs });
    if (begun.ok) return ok(begun.value.id);
    const { running } = begun.error;
    reporter.say({ state: "waiting", message: `waiting for operation ${running.id} (${running.kind}) to end` });
    await host.clock.sleep(pollMs, signal);
    if (signal?.aborted === true) return fail("stopped", "stopped while waiting for another operation");
  }
}

/**
 * The marker is there but power was lost before the operation's end was recorded. The unit of bootstrap does not start
 * any more, so whatever runs next says it: the API when it starts, or bootstrap called by hand.
 */
export function endFinishedBootstrap(state: Pick<State, "operations" | "events">, atMs: number): void {
  const left = state.operations.abandoned().find(({ kind }) => kind === "bootstrap");
  if (left === undefined) return;
  const last = left.steps.find(({ state: stepState }) => stepState === "running");
  if (last !== undefined) state.operations.step(left.id, { id: last.id, title: last.title, state: "done" }, atMs);
  state.operations.end(left.id, { phase: "succeeded" }, atMs);
  state.events.add({ atMs, kind: "in-service", severity: "info", message: "this node is in service" });
}

export interface Run<S extends StepBase> {
  readonly operation: string;
  readonly steps: readonly S[];
  readonly executors: Executors<S>;
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly isSuperseded: (intent: Intent) => boolean;
  readonly onStep?: (step: S, state: OperationStep["state"]) => void;
}

export async function runSteps<S extends StepBase>(
  services: BootstrapServices,
  run: Run<S>,
): Promise<Result<void, AppError>> {
  const { host, state, reporter, signal } = services;
  const { operation, steps, executors, secrets, isSuperseded } = run;
  const pending = steps.map(({ id, title }): OperationStep => ({ id, title, state: "pending" }));
  state.operations.plan(operation, pending, host.clock.nowMs());
  let current: StepBase | undefined;
  return execute(steps, executors, {
    host,
    secrets,
    journal: state.journal,
    inventory: services.readInventory,
    isSuperseded,
    ...(signal === undefined ? {} : { signal }),
    onStep: (step, stepState) => {
      if (stepState === "running") current = step;
      state.operations.step(operation, { id: step.id, title: step.title, state: stepState }, host.clock.nowMs());
      run.onStep?.(step as S, stepState);
    },
    onMessage: (message) => {
      state.operations.message(operation, message, host.clock.nowMs());
      const step = current === undefined ? {} : { step: { id: current.id, title: current.title } };
      if (message !== undefined) reporter.say({ state: "running", ...step, message });
    },
  });
}

/** Shown with its cause, and not the end: a corrected document, `cctl retry` or the next boot goes on. */
function failOperation(services: BootstrapServices, operation: string | undefined, error: AppError): void {
  const { host, state, reporter } = services;
  // The machine is going down: the operation is gone on with at the next boot.
  if (codesOf(error).includes("stopped")) return;
  const atMs = host.clock.nowMs();
  const text = formatError(error);
  const [first = error.message] = text.split("\n");
  if (operation !== undefined && state.operations.running()?.id === operation) {
    state.operations.end(operation, { phase: "failed", failureReason: text }, atMs);
  }
  state.events.add({ atMs, kind: "bootstrap-failed", severity: "error", message: first });
  reporter.say({ state: "failed", error: text.split("\n") });
}

function codesOf(error: AppError): readonly string[] {
  return [error.code, ...(error.cause === undefined ? [] : codesOf(error.cause))];
}

/** Since when this document has been the one that is acted on. */
export function rememberDocument({ host, state }: BootstrapServices, found: FoundDocument): number {
  const [latest, ...older] = state.documents.list();
  if (latest?.sha256 !== found.sha256) {
    const { text, origin } = found;
    return state.documents.add({ text, origin, atMs: host.clock.nowMs(), requester: { kind: "document" } }).atMs;
  }
  let sinceMs = latest.atMs;
  for (const stored of older) {
    if (stored.sha256 !== found.sha256) break;
    sinceMs = stored.atMs;
  }
  return sinceMs;
}

/** Decided by an earlier document. A clock that went back makes this false, which only refuses more. */
export const isSuperseded = (intent: Intent, storedAtMs: number): boolean => intent.openedAtMs < storedAtMs;
