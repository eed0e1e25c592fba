/** POST /v1/config on a node in service: the gate, and what comes of a request that it lets through. */
import type { ApplyAnswer } from "../../api/contract.ts";
import type { Document } from "../../config/document.ts";
import { ANY_TIME } from "../../config/load.ts";
import { formatError } from "../../kit/app-error.ts";
import type { Finding } from "../../kit/finding.ts";
import { readControlPlane } from "../../k0s/cluster/driver.ts";
import type { ControlPlane } from "../../k0s/cluster/model.ts";
import { checkAuthority } from "../../pki/authority.ts";
import { readOperatorCa } from "../../provision/operator-ca/driver.ts";
import { changesContent, mayBeSeveral, ownOf } from "../cluster-content.ts";
import { planOnNode, withHandEdits } from "../live-plan/driver.ts";
import { runOperation } from "../operation/driver.ts";
import type { ApplyPlan } from "../plan.ts";
import { refusalOf } from "../refusal.ts";
import type { NewCa } from "../undo/model.ts";
import { untilItWaits } from "../waiting/driver.ts";
import { readProposal } from "./proposal.ts";
import {
  type ApplyDependencies,
  busy,
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
  const recorded = dependencies.parse(baseline.document.text, ANY_TIME);
  const before = recorded.document;
  if (before === undefined) {
    const error =
      "what the node runs was recorded from a document that is not valid for this release, so nothing can be compared with it; see problems; start the release that took it, and apply one there that is valid for both";
    return refused(503, "baseline-unreadable", error, { problems: recorded.findings });
  }
  const nowMs = host.clock.nowMs();
  const { findings, document } = readProposal(dependencies.parse, request.document, { before, nowMs });
  if (document === undefined) {
    return refused(400, "invalid-document", "the document is not valid, and nothing was changed; see problems", {
      problems: findings,
    });
  }
  const planned = await planOnNode(dependencies, {
    baseline,
    before,
    proposal: document,
    ownPatch: request.acknowledge,
    isConfirmed: request.confirmWithinMs !== undefined,
  });
  // The leader, which is last, makes the releases: none of the others could wait for them.
  const gated = request.isCoordinated === true ? { ...planned, charts: [] } : planned;
  const handedOver = state.handover.done()?.stack;
  const no = refusalOf(gated, { ...request, ...(handedOver === undefined ? {} : { handedOver }) });
  if (no !== undefined) return no;
  const isCoordinated = request.isCoordinated === true;
  const several = await lookAround(dependencies, { document, baseline, plan: gated, isCoordinated });
  if (several.kind === "refused") return several;
  const { controlPlane } = several;
  const plan = await withHandEdits(dependencies, gated, { baseline, text: request.document });
  const answer = {
    ...answerOf(plan, document, findings),
    ...(controlPlane === undefined ? {} : { controlPlane }),
  };
  if (request.isDryRun && plan.diff.result !== "unchanged") {
    return { kind: "answer", answer: { ...answer, status: "planned" } };
  }
  if (plan.diff.result === "unchanged") {
    // It is not what the node runs at this moment.
    const open = request.isDryRun ? undefined : state.operations.running();
    if (open?.phase === "awaiting-confirmation") return busy(open);
    return { kind: "answer", answer: { ...answer, status: "unchanged" } };
  }
  const newCa = await readNewCa(dependencies, document, plan);
  if ("kind" in newCa) return newCa;
  const work: Work = { request, baseline, document, plan, answer, ...newCa };
  if (request.confirmWithinMs !== undefined) {
    const waiting = { ...answer, status: "awaiting-confirmation" } as const;
    return untilItWaits(state, { answer: waiting, run: (holding) => runOperation(dependencies, work, holding) });
  }
  if (!isCoordinated) return runOperation(dependencies, work);
  return untilItWaits(state, {
    answer: { ...answer, status: "written" },
    run: async (holding) => withLeader(dependencies, await runOperation(dependencies, work, holding)),
  });
}

/** Who leads may have changed since it was planned. */
async function withLeader({ host, state }: ApplyDependencies, outcome: ServiceOutcome): Promise<ServiceOutcome> {
  if (outcome.kind === "refused") return outcome;
  const { controlPlane: _old, ...answer } = outcome.answer;
  const baseline = state.baseline.get();
  const now = baseline === undefined ? undefined : await readControlPlane(host, ownOf(baseline));
  return { kind: "answer", answer: { ...answer, ...(now?.ok === true ? { controlPlane: now.value } : {}) } };
}

/** The CA that the node would obey; nothing where it is the one that it obeys already. */
async function readNewCa(
  { host, state }: ApplyDependencies,
  { api }: Document,
  { diff }: ApplyPlan,
): Promise<{ readonly newCa?: NewCa } | Refused> {
  if (api === undefined || !diff.fields.some(({ path }) => path.startsWith("api.operatorCA"))) return {};
  const pem = await readOperatorCa(host, api);
  if (!pem.ok) return refused(503, pem.error.code, `nothing was changed: ${formatError(pem.error)}`);
  if (pem.value === undefined) return {};
  const checked = checkAuthority(pem.value, host.clock.nowMs());
  if (!checked.ok) return refused(400, checked.error.code, `nothing was changed: ${formatError(checked.error)}`);
  const claim = state.claim.get();
  if (claim === undefined) {
    const error =
      "nobody has claimed this node, and a document can't do that once it is in service; nothing was changed";
    return refused(409, "unclaimed", error);
  }
  const { pem: operatorCA, fingerprint } = checked.value;
  return fingerprint === claim.fingerprint ? {} : { newCa: { operatorCA, fingerprint } };
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

const answerOf = (plan: ApplyPlan, document: Document, findings: readonly Finding[]): ApplyAnswer => ({
  status: "reconciled",
  ...(document.role === undefined ? {} : { role: document.role }),
  fields: plan.diff.fields,
  restarted: plan.restarts,
  files: plan.files.map(({ path, diff }) => ({ path, diff })),
  consequences: [...plan.consequences, ...plan.undo],
  warnings: [...findings, ...plan.warnings],
});
