/** POST /v1/config on a node in service, as one operation from the gate to the record. */
import type { ApplyAnswer } from "../../api/contract.ts";
import type { Document } from "../../config/document.ts";
import { secretFields } from "../../config/secrets.ts";
import { type AppError, appError, fail, formatError } from "../../kit/app-error.ts";
import type { Finding } from "../../kit/finding.ts";
import { ok, type Result } from "../../kit/result.ts";
import type { Secret } from "../../kit/secret.ts";
import { readControlPlane, waitForMembers } from "../../k0s/cluster/driver.ts";
import type { ControlPlane } from "../../k0s/cluster/model.ts";
import type { OperationStep } from "../../state/model.ts";
import { applyDocument, type ApplyOutcome as Outcome, type ApplyPorts, applySteps } from "../driver.ts";
import { changesContent, mayBeSeveral, ownOf } from "../cluster-content.ts";
import { nodeFingerprintKey } from "../fingerprint-key.ts";
import { TAKEN_BACK } from "../held/driver.ts";
import { inputHash, secretFingerprints } from "../input-hash.ts";
import { planOnNode } from "../live-plan/driver.ts";
import type { ApplyPlan } from "../plan.ts";
import { recoverApplies } from "../recovery/driver.ts";
import { type Holding, writeAndHold } from "../waiting/driver.ts";
import {
  type ApplyDependencies,
  type Refused,
  refused,
  type ServiceOutcome,
  type ServiceRequest,
  type Work,
} from "./model.ts";

/** One apply, from the text to the answer. A dry run and a refusal leave no trace. */
export async function serveApply(dependencies: ApplyDependencies, request: ServiceRequest): Promise<ServiceOutcome> {
  const { host, state } = dependencies;
  const baseline = state.baseline.get();
  if (baseline === undefined) {
    return refused(409, "no-baseline", "the node has no record of what it runs, so nothing can be compared with it");
  }
  // What runs is what runs: a certificate that expired since is no reason to doubt the baseline.
  const before = dependencies.parse(baseline.document.text, baseline.document.atMs).document;
  if (before === undefined) return refused(503, "baseline-unreadable", "the recorded document can't be read any more");
  const { findings, document } = dependencies.parse(request.document, host.clock.nowMs());
  if (document === undefined) {
    return refused(400, "invalid-document", "the document is not valid, and nothing was changed", {
      problems: findings,
    });
  }
  const planned = await planOnNode(dependencies, {
    baseline,
    before,
    proposal: document,
    ownPatch: request.acknowledge,
  });
  // The leader, which is last, makes the releases: none of the others could wait for them.
  const plan = request.isCoordinated === true ? { ...planned, charts: [] } : planned;
  const no = refusalOf(plan, state.handover.done()?.stack);
  if (no !== undefined) return no;
  const isCoordinated = request.isCoordinated === true;
  const several = await lookAround(dependencies, { document, baseline, plan, isCoordinated });
  if (several.kind === "refused") return several;
  const { controlPlane } = several;
  const answer = {
    ...answerOf(plan, document, findings),
    ...(controlPlane === undefined ? {} : { controlPlane }),
  };
  if (plan.diff.result === "unchanged") return { kind: "answer", answer: { ...answer, status: "unchanged" } };
  if (request.isDryRun) return { kind: "answer", answer: { ...answer, status: "planned" } };
  const work = { request, baseline, document, plan, answer };
  return isCoordinated
    ? writeAndHold(dependencies, work, (holding) => runOperation(dependencies, work, holding))
    : runOperation(dependencies, work);
}

type Around = { readonly kind: "several"; readonly controlPlane?: ControlPlane } | Refused;

/**
 * k0s's leader applies its own charts and stacks and prunes the rest, so that what one controller alone is given goes
 * away at the next election. Where k0s can't say who else there is, a controller with etcd counts as one of several.
 */
async function lookAround(
  { host, state }: Pick<ApplyDependencies, "host" | "state">,
  {
    document,
    baseline,
    plan,
    isCoordinated,
  }: Pick<Work, "document" | "baseline" | "plan"> & { isCoordinated: boolean },
): Promise<Around> {
  const isContent = changesContent(plan.diff.fields, state.handover.done()?.stack);
  if (!mayBeSeveral(document) || (!isCoordinated && !isContent)) return { kind: "several" };
  const found = await readControlPlane(host, ownOf(baseline));
  if (isCoordinated) return { kind: "several", ...(found.ok ? { controlPlane: found.value } : {}) };
  if (found.ok && found.value.members.length < 2) return { kind: "several" };
  const who = found.ok
    ? `this is one of the controllers ${found.value.members.join(", ")}`
    : `this may be one of several controllers (it can't be asked: ${found.error.message})`;
  const error = `${who}, and k0s's leader applies its own add-ons and manifests: a change on one alone is undone at the next election; give it to all of them with \`cctl apply N1 N2 N3 --file FILE\``;
  return refused(409, "coordinated", error);
}

function refusalOf({ diff }: ApplyPlan, handedOver: string | undefined): ServiceOutcome | undefined {
  if (diff.reason === "handed-over") {
    const at = `manifests[${handedOver}]`;
    const error = `${at} was handed over to GitOps and is no longer read here: change it there; this document may only leave it as it was, or drop it`;
    const fields = diff.fields.filter(({ path }) => path.startsWith(at));
    return refused(409, "handed-over", error, { refused: { fields, removed: diff.removed } });
  }
  const fields = diff.fields.filter((field) => field.class === "immutable" || field.class === "own-verb");
  if (fields.length > 0 || diff.removed.length > 0) {
    const names = [
      ...fields.map(({ path }) => path),
      ...diff.removed.map(({ path, name }) => `${path} (${name} is gone)`),
    ];
    const error = `this node has already bootstrapped, so its configuration is no longer a question it can answer: ${names.join(", ")}; what a node is changes only with \`cctl reset\`, and what is gone is removed with kubectl first`;
    return refused(409, "immutable", error, { refused: { fields, removed: diff.removed } });
  }
  if (diff.reason === "patch-overrides") {
    const error = `k0s.patch changes what Corium keeps fixed on a running node: ${diff.overrides.join(", ")}; if that is what you mean, own it with --own-patch`;
    return refused(409, "patch-overrides", error);
  }
  if (diff.result !== "guarded") return undefined;
  const guarded = diff.fields.filter((field) => field.class === "guarded");
  const error = `a change of ${guarded.map(({ path }) => path).join(", ")} could lock you out and needs a confirmation, which this release does not have; nothing was changed`;
  return refused(409, "needs-confirmation", error, { refused: { fields: guarded, removed: [] } });
}

const answerOf = (plan: ApplyPlan, document: Document, findings: readonly Finding[]): ApplyAnswer => ({
  status: "reconciled",
  ...(document.role === undefined ? {} : { role: document.role }),
  fields: plan.diff.fields,
  restarted: plan.restarts,
  files: plan.files.map(({ path, diff }) => ({ path, diff })),
  consequences: [...plan.consequences, ...plan.undo],
  warnings: [...findings, ...plan.warnings],
});

async function runOperation(dependencies: ApplyDependencies, work: Work, holding?: Holding): Promise<ServiceOutcome> {
  const { host, state, version } = dependencies;
  const steps = applySteps(work.plan, holding !== undefined).map((step): OperationStep => ({
    ...step,
    state: "pending",
  }));
  const atMs = host.clock.nowMs();
  const begun = state.operations.begin({ kind: "apply", requester: work.request.requester, version, steps, atMs });
  if (!begun.ok) {
    const { running } = begun.error;
    return refused(409, "busy", `operation ${running.id} (${running.kind}) is not over yet`, { operation: running.id });
  }
  const operation = begun.value.id;
  holding?.onBegin(operation);
  const outcome = await recoverAndApply(dependencies, { work, operation, ...(holding === undefined ? {} : holding) });
  const ended = concludeOperation(dependencies, operation, outcome);
  return ended ?? { kind: "answer", answer: { ...work.answer, operation } };
}

async function recoverAndApply(
  dependencies: ApplyDependencies,
  { work, operation, held }: { readonly work: Work; readonly operation: string; readonly held?: Holding["held"] },
): Promise<Outcome> {
  const { host, state, paths, timeoutMs } = dependencies;
  const recovered = await recoverApplies(dependencies);
  if (!recovered.ok) return { status: "failed", error: recovered.error };
  // What was finished just now is another baseline than the one that was planned on.
  if (state.baseline.get()?.document.id !== work.baseline.document.id) {
    return { status: "failed", error: appError("changed-in-between", "somebody applied in between; plan again") };
  }
  const ports: ApplyPorts = {
    host,
    paths,
    report: (message) => state.operations.message(operation, message, host.clock.nowMs()),
    onStep: (step, stepState) => state.operations.step(operation, { ...step, state: stepState }, host.clock.nowMs()),
    record: (now) => recordBaseline(dependencies, work, now),
    ...(held === undefined ? {} : { hold: held.wait }),
  };
  const before = work.answer.controlPlane?.members;
  const settle = before === undefined ? undefined : () => waitForMembers(ports, before);
  return applyDocument(
    {
      operation,
      plan: work.plan,
      document: work.document,
      text: work.request.document,
      secrets: inlineSecrets(work.document),
      rendered: work.baseline.rendered,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
    { ...ports, ...(settle === undefined ? {} : { settle }) },
  );
}

const inlineSecrets = (document: Document): ReadonlyMap<string, Secret> =>
  new Map(
    secretFields(document).flatMap(({ path, inline }) => (inline === undefined ? [] : [[path, inline] as const])),
  );

const fieldsOf = (document: Document): ReadonlySet<string> => new Set(secretFields(document).map(({ path }) => path));

function recordBaseline(
  { host, state }: ApplyDependencies,
  { request, baseline, document }: Work,
  now: Parameters<ApplyPorts["record"]>[0],
): Result<void, AppError> {
  const atMs = host.clock.nowMs();
  const { hostname, addresses, k0sVersion } = baseline;
  const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
  // What an apply neither reads nor writes is as it was: keys of overlays, and files that an older release rendered.
  const known = Object.entries(baseline.secretFingerprints).filter(([field]) => fieldsOf(document).has(field));
  const fingerprints = { ...Object.fromEntries(known), ...secretFingerprints(now.secrets, fingerprintKey) };
  const hash = inputHash({
    document,
    secrets: fingerprints,
    addresses,
    hostname,
    k0sVersion,
    fingerprintKey,
    isHandedOver: state.handover.done() !== undefined,
    renderVersion: baseline.renderVersion,
  });
  try {
    // The document alone means nothing yet: the baseline that names it is what counts.
    const stored = state.documents.add({ text: request.document, atMs, requester: request.requester, origin: "apply" });
    state.baseline.set({
      ...baseline,
      document: stored,
      inputHash: hash,
      rendered: now.rendered,
      secretFingerprints: fingerprints,
      atMs,
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
