/** One apply as an operation: begun, carried out, waiting where it has to, and ended with what became of it. */
import { inlineSecrets, secretFields } from "../../config/secrets.ts";
import type { Document } from "../../config/document.ts";
import { type AppError, appError, fail, formatError } from "../../kit/app-error.ts";
import { ok, type Result } from "../../kit/result.ts";
import type { Secret } from "../../kit/secret.ts";
import { waitForMembers } from "../../k0s/cluster/driver.ts";
import type { OperationStep, Requester } from "../../state/model.ts";
import { isAwaited, notConfirmed, objectionTo, waitingMessage } from "../confirmation.ts";
import { applyDocument, type ApplyOutcome as Outcome, type ApplyPorts, applySteps, concludeApply } from "../driver.ts";
import { nodeFingerprintKey } from "../fingerprint-key.ts";
import { TAKEN_BACK, type Wait } from "../held/driver.ts";
import { inputHash, secretFingerprints } from "../input-hash.ts";
import { recoverApplies } from "../recovery/driver.ts";
import { type ApplyDependencies, busy, refused, type ServiceOutcome, type Work } from "../service/model.ts";
import { markAwaited, readRecords } from "../undo/driver.ts";
import type { Awaited, Made, NewCa } from "../undo/model.ts";
import { type Holding, untilItWaits } from "../waiting/driver.ts";

const HOLD_MS = 60 * 60_000;

/** `holding`: for a request that is coordinated, or to be confirmed. */
export async function runOperation(
  dependencies: ApplyDependencies,
  work: Work,
  holding?: Holding,
): Promise<ServiceOutcome> {
  const { host, state, version } = dependencies;
  const { requester, isCoordinated, confirmWithinMs } = work.request;
  const waits = isCoordinated === true ? "hold" : confirmWithinMs === undefined ? undefined : "confirm";
  const steps = applySteps(work.plan, waits).map((step): OperationStep => ({ ...step, state: "pending" }));
  const begun = state.operations.begin({ kind: "apply", requester, version, steps, atMs: host.clock.nowMs() });
  if (!begun.ok) return busy(begun.error.running);
  const operation = begun.value.id;
  holding?.onBegin(operation);
  const outcome = await recoverAndApply(dependencies, { work, operation, ...(holding === undefined ? {} : holding) });
  const ended = concludeOperation(dependencies, operation, outcome);
  return ended ?? { kind: "answer", answer: { ...work.answer, operation } };
}

interface Begun {
  readonly work: Work;
  readonly operation: string;
  readonly held?: Holding["held"];
}

async function recoverAndApply(dependencies: ApplyDependencies, begun: Begun): Promise<Outcome> {
  const { state, timeoutMs } = dependencies;
  const { work, operation } = begun;
  const { baseline, document } = work;
  const recovered = await recoverApplies(dependencies);
  if (!recovered.ok) return { status: "failed", error: recovered.error };
  // What was finished just now is another baseline than the one that was planned on.
  if (state.baseline.get()?.document.id !== baseline.document.id) {
    return { status: "failed", error: appError("changed-in-between", "somebody applied in between; plan again") };
  }
  const { requester } = work.request;
  const ports = {
    ...portsOf(dependencies, operation, { requester, ...newCaIn(work) }),
    ...waitingPorts(dependencies, begun),
  };
  const before = work.answer.controlPlane?.members;
  const settle = before === undefined ? undefined : () => waitForMembers(ports, before);
  return applyDocument(
    {
      operation,
      plan: work.plan,
      document,
      text: work.request.document,
      secrets: inlineSecrets(document),
      rendered: baseline.rendered,
      sourceSha256: baseline.document.sha256,
      inputsWith: (secrets) => inputsOf(dependencies, work, secrets),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
    { ...ports, ...(settle === undefined ? {} : { settle }) },
  );
}

const newCaIn = ({ newCa }: { readonly newCa?: NewCa }): { readonly newCa?: NewCa } =>
  newCa === undefined ? {} : { newCa };

interface Author {
  readonly requester: Requester;
  readonly newCa?: NewCa;
}

function portsOf(dependencies: ApplyDependencies, operation: string, author: Author): ApplyPorts {
  const { host, state, paths } = dependencies;
  return {
    host,
    paths,
    report: (message) => state.operations.message(operation, message, host.clock.nowMs()),
    onStep: (step, stepState) => state.operations.step(operation, { ...step, state: stepState }, host.clock.nowMs()),
    record: (made) => recordBaseline(dependencies, author, made),
  };
}

/** Where it waits, and for what. */
function waitingPorts(
  dependencies: ApplyDependencies,
  { work, operation, held }: Begun,
): Pick<ApplyPorts, "hold" | "confirm"> {
  const { host, state, paths, holdFor } = dependencies;
  const { requester, confirmWithinMs } = work.request;
  if (held === undefined) return {};
  if (confirmWithinMs === undefined) {
    const late = appError("given-up", "nobody said that k0s may restart with it", {
      hint: "the other controllers may have it already: apply to all of them again",
    });
    const sleep = holdFor ?? ((signal) => host.clock.sleep(HOLD_MS, signal));
    const onWait = (): void => sayItWaits(dependencies, operation, "written; waiting until every controller has it");
    return { hold: () => waitedFor(dependencies, operation, held.wait({ sleep, late, onWait })) };
  }
  return {
    async confirm(made, record) {
      const untilMs = host.clock.monotonicMs() + confirmWithinMs;
      const byConnection = work.request.isConfirmedByConnection === true ? ({ isByConnection: true } as const) : {};
      const awaited: Awaited = { ...made, requester, bootId: state.bootId, untilMs, ...newCaIn(work), ...byConnection };
      const marked = await markAwaited(host, paths.stateDir, record, awaited);
      if (!marked.ok) return marked;
      return waitedFor(dependencies, operation, held.wait(confirmationOf(dependencies, operation, awaited)));
    },
  };
}

/** Whoever comes too late must not read that it waits for him: it is being taken back, which may take minutes. */
async function waitedFor(
  { host, state }: ApplyDependencies,
  operation: string,
  wait: Promise<Result<void, AppError>>,
): Promise<Result<void, AppError>> {
  const word = await wait;
  if (!word.ok) state.operations.phase(operation, "running", host.clock.nowMs());
  return word;
}

function confirmationOf(dependencies: ApplyDependencies, operation: string, awaited: Awaited): Wait {
  const { host, holdFor, lastConnection } = dependencies;
  const leftMs = awaited.untilMs - host.clock.monotonicMs();
  const since = lastConnection?.() ?? 0;
  return {
    sleep: holdFor ?? ((signal) => host.clock.sleep(leftMs, signal)),
    late: notConfirmed(),
    onWait: () => sayItWaits(dependencies, operation, waitingMessage(operation, awaited, host.clock.nowMs() + leftMs)),
    objection: (teller) => objectionTo(teller, awaited, since),
    ...(awaited.newCa === undefined ? {} : { newCa: awaited.newCa.operatorCA }),
    ...(awaited.isByConnection === undefined ? {} : { isByConnection: true as const }),
  };
}

function sayItWaits({ host, state }: ApplyDependencies, operation: string, message: string): void {
  const atMs = host.clock.nowMs();
  state.operations.phase(operation, "awaiting-confirmation", atMs);
  state.operations.message(operation, message, atMs);
}

/** At the start of the program: waits on for what an earlier one of this boot has made. */
export async function goOnWaiting(dependencies: ApplyDependencies): Promise<void> {
  const { host, state, paths, timeoutMs } = dependencies;
  const records = await readRecords(host, paths.stateDir);
  if (!records.ok) return;
  const now = { bootId: state.bootId, monotonicMs: host.clock.monotonicMs() };
  for (const record of records.value) {
    const { operation, awaited } = record;
    if (awaited === undefined || !isAwaited(record, now)) continue;
    state.operations.adopt(operation, host.clock.nowMs());
    const answer = {
      status: "reconciled",
      fields: [],
      restarted: record.restarts,
      files: [],
      consequences: [],
      warnings: [],
    } as const;
    await untilItWaits(state, {
      answer,
      run: async ({ held, onBegin }) => {
        onBegin(operation);
        const ports: ApplyPorts = {
          ...portsOf(dependencies, operation, awaited),
          confirm: () =>
            waitedFor(dependencies, operation, held.wait(confirmationOf(dependencies, operation, awaited))),
        };
        const before = { record, runs: new Map() };
        const outcome = await concludeApply(timeoutMs === undefined ? {} : { timeoutMs }, ports, before, awaited);
        return (
          concludeOperation(dependencies, operation, outcome) ?? { kind: "answer", answer: { ...answer, operation } }
        );
      },
    });
  }
}

const fieldsOf = (document: Document): ReadonlySet<string> => new Set(secretFields(document).map(({ path }) => path));

function inputsOf(
  { host, state }: ApplyDependencies,
  { baseline, document }: Work,
  secrets: ReadonlyMap<string, Secret>,
): Pick<Made, "inputHash" | "secretFingerprints"> {
  const { hostname, addresses, k0sVersion, renderVersion } = baseline;
  const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
  // What an apply neither reads nor writes is as it was: keys of overlays, and files that an older release rendered.
  const known = Object.entries(baseline.secretFingerprints).filter(([field]) => fieldsOf(document).has(field));
  const fingerprints = { ...Object.fromEntries(known), ...secretFingerprints(secrets, fingerprintKey) };
  const hash = inputHash({
    document,
    secrets: fingerprints,
    addresses,
    hostname,
    k0sVersion,
    fingerprintKey,
    isHandedOver: state.handover.done() !== undefined,
    renderVersion,
  });
  return { inputHash: hash, secretFingerprints: fingerprints };
}

/** Document, baseline and, with a new CA, the claim: one moment. */
function recordBaseline(
  { host, state }: ApplyDependencies,
  { requester, newCa }: Author,
  { text, rendered, inputHash: hash, secretFingerprints: fingerprints }: Made,
): Result<void, AppError> {
  const atMs = host.clock.nowMs();
  try {
    state.transaction(() => {
      const baseline = state.baseline.get();
      if (baseline === undefined) throw new Error("there is none to replace");
      const document = state.documents.add({ text, atMs, requester, origin: "apply" });
      state.baseline.set({ ...baseline, document, inputHash: hash, secretFingerprints: fingerprints, rendered, atMs });
      if (newCa === undefined) return;
      state.claim.replace({ ...newCa, atMs, by: "document" });
      const message = `the operator CA ${newCa.fingerprint} is obeyed from now on, and no other`;
      state.events.add({ atMs, kind: "ca-rotated", severity: "warning", message });
    });
    return ok(undefined);
  } catch (error) {
    return fail("state", `the baseline could not be recorded: ${error instanceof Error ? error.message : "unknown"}`);
  }
}

/** Ends the operation; a refusal when it did not succeed. */
function concludeOperation(
  { host, state }: ApplyDependencies,
  operation: string,
  outcome: Outcome,
): ServiceOutcome | undefined {
  const atMs = host.clock.nowMs();
  if (outcome.status === "reconciled" || outcome.status === "unchanged") {
    state.operations.end(operation, { phase: "succeeded" }, atMs);
    state.events.add({ atMs, kind: "applied", severity: "info", message: `operation ${operation} applied a document` });
    return undefined;
  }
  const failureReason = formatError(outcome.error);
  const isTakenBack = outcome.status === "rolled-back" && outcome.error.code === TAKEN_BACK;
  const phase = isTakenBack ? "cancelled" : outcome.status === "rolled-back" ? "rolled-back" : "failed";
  state.operations.end(operation, { phase, failureReason }, atMs);
  state.events.add({
    atMs,
    kind: "apply-failed",
    severity: "error",
    message: `operation ${operation} ${phase}: ${outcome.error.message}`,
  });
  switch (outcome.status) {
    case "rolled-back":
      return refused(409, isTakenBack ? TAKEN_BACK : "rolled-back", `the change was taken back: ${failureReason}`, {
        operation,
      });
    case "chart-failed":
      return refused(409, "chart-failed", `the document is applied, but ${failureReason}`, { operation });
    case "stuck":
      return refused(503, "stuck", failureReason, { operation });
    case "failed":
      return refused(
        outcome.error.code === "k0s-config" ? 400 : 503,
        outcome.error.code,
        `nothing was changed: ${failureReason}`,
        { operation },
      );
    default:
      return outcome satisfies never;
  }
}
