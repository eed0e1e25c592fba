import { z } from "zod";

import { CONFIRM_WITHIN, parseConfirmWithin } from "../../apply/confirmation.ts";
import { documentJsonSchema } from "../../config/json-schema.ts";
import { ANY_TIME } from "../../config/load.ts";
import { withBlocks } from "../../config/with-blocks.ts";
import { K0S_MANIFESTS } from "../../k0s/paths.ts";
import { type Finding, hasErrors } from "../../kit/finding.ts";
import { includesRole } from "../../kit/operator-role.ts";
import { err, ok, type Result } from "../../kit/result.ts";
import type { Baseline, StoredDocument } from "../../state/model.ts";
import type { State } from "../../state/open.ts";
import { nameOf } from "../../state/requester.ts";
import type { ApplyAnswer, ConfigAnswer, ConfigReason, ConfigStatusAnswer, PreviousAnswer } from "../contract.ts";
import { oneAtATime } from "../one-at-a-time.ts";
import { acceptDocument } from "../accept-document.ts";
import { readDryRun } from "../dry-run.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { DOCUMENT_BODY_BYTES, withBody } from "../route.ts";

const applySchema = z.strictObject({
  document: z.string().optional(),
  blocks: z.string().optional().meta({
    description: "instead of a document: addons, manifests, k0s, upgrades, backup to put into the node's own",
  }),
  coordinated: z
    .boolean()
    .optional()
    .meta({ description: "every controller gets it: written now, k0s restarts when the operation is confirmed" }),
  confirmWithin: z
    .string()
    .optional()
    .meta({
      description: `taken back once it is made, unless the operation is confirmed in this time: ${CONFIRM_WITHIN.words}`,
    }),
  acknowledge: z.boolean().optional().meta({ description: "own what the patch overrides" }),
});
type Body = z.output<typeof applySchema>;

/** Changes with each recorded baseline, also when the same document is recorded again. */
export const etagOf = (baseline: Baseline): string => `"${baseline.document.id}-${baseline.inputHash.slice(0, 16)}"`;

/** Of what GET /v1/config answers; before bootstrap that is the last document given. */
function currentEtag({ baseline, documents }: State): string | undefined {
  const recorded = baseline.get();
  if (recorded !== undefined) return etagOf(recorded);
  const latest = documents.latest();
  return latest === undefined ? undefined : `"${latest.id}"`;
}

const ETAG = /^(?:W\/)?"[^"]*"$/;

/** RFC 9110, section 13.1.1: any one of a list. */
function refuseStale({ services, headers }: RouteContext<Body>): Response | undefined {
  const wanted = headers
    .get("if-match")
    ?.split(",")
    .map((tag) => tag.trim());
  if (wanted === undefined || wanted.includes("*")) return undefined;
  if (wanted.some((tag) => tag === currentEtag(services.state))) return undefined;
  if (!wanted.some((tag) => ETAG.test(tag))) {
    const error = "If-Match holds no ETag; give one as the node gave it, its double quotes included; nothing was done";
    return problem(400, error, { reason: "invalid-header" });
  }
  return problem(412, "somebody applied in between; look at the plan again", { reason: "changed-in-between" });
}

export const CONFIG_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/config",
    role: "readonly",
    summary: "the document that the node runs; secrets as fingerprints below admin",
    run: getConfig,
  },
  {
    method: "GET",
    path: "/v1/config/previous",
    role: "admin",
    summary: "the document that the node was given before the one it runs, to apply it again",
    run: getPrevious,
  },
  {
    method: "GET",
    path: "/v1/config/status",
    role: "readonly",
    summary: "in-sync, pending or drifted, with reasons, what they would take, and diffs",
    run: getStatus,
  },
  {
    method: "GET",
    path: "/v1/config/schema",
    role: "readonly",
    summary: "JSON Schema of the document, as this node's version reads it",
    needsNoState: true,
    run: () => json(200, documentJsonSchema()),
  },
  withBody({
    method: "POST",
    path: "/v1/config",
    role: "admin",
    summary: "before bootstrap the node's answer, afterwards a gated apply",
    query: [{ name: "dryRun", description: "true: only plan" }],
    schema: applySchema,
    limitBytes: DOCUMENT_BODY_BYTES,
    run: postConfig,
  }),
];

function getConfig({ services, role, requester }: RouteContext): Response {
  const baseline = services.state.baseline.get();
  const stored: StoredDocument | undefined = baseline?.document ?? services.state.documents.latest();
  if (stored === undefined) {
    return problem(404, "this node has no document yet; give it one with `cctl apply`", { reason: "unconfigured" });
  }
  const etag = currentEtag(services.state) ?? "";
  // It holds secrets, so that it is told who took it.
  if (includesRole(role, "admin")) {
    const atMs = services.host.clock.nowMs();
    services.state.audit.add({ atMs, requester, route: "GET /v1/config", status: 200, outcome: "done" });
  }
  const answer: ConfigAnswer = {
    document: includesRole(role, "admin") ? stored.text : services.config.redact(stored.text),
    sha256: stored.sha256,
    at: new Date(stored.atMs).toISOString(),
    etag,
  };
  return json(200, answer, { etag });
}

async function getStatus({ services, role }: RouteContext): Promise<Response> {
  const baseline = services.state.baseline.get();
  const { state, reasons } = await services.status.config();
  const answer: ConfigStatusAnswer = {
    state,
    reasons: includesRole(role, "admin") ? reasons : reasons.map(withoutPrivateDiff),
    ...(baseline === undefined ? {} : { etag: etagOf(baseline) }),
  };
  return json(200, answer);
}

/** Add-on values, patches and manifests are for admins, as they are in GET /v1/config. */
function withoutPrivateDiff(reason: ConfigReason): ConfigReason {
  const { diff: _, ...rest } = reason;
  return reason.path?.startsWith("/etc/k0s/") === true || reason.path?.startsWith(K0S_MANIFESTS) === true
    ? rest
    : reason;
}

/** Older than what runs, and not the same: applied twice, the two change places. */
function getPrevious({ services, requester }: RouteContext): Response {
  const { state, host } = services;
  const running = state.baseline.get()?.document;
  const stored = state.documents.list().find(
    ({ id, sha256, text }) =>
      running !== undefined &&
      id < running.id &&
      sha256 !== running.sha256 &&
      // From before it was a node: no document to go back to.
      services.config.parse(text, ANY_TIME).document?.role !== undefined,
  );
  if (stored === undefined) {
    return problem(404, "this node keeps no document from before the one it runs", { reason: "no-previous" });
  }
  const atMs = host.clock.nowMs();
  state.audit.add({ atMs, requester, route: "GET /v1/config/previous", status: 200, outcome: "done" });
  const { text, sha256 } = stored;
  const at = new Date(stored.atMs).toISOString();
  return json(200, { document: text, sha256, at, by: nameOf(stored.requester) } satisfies PreviousAnswer);
}

async function postConfig(context: RouteContext<Body>): Promise<Response> {
  const { services, body, requester, query } = context;
  const dryRun = readDryRun(query);
  if (!dryRun.ok) return dryRun.error;
  const isDryRun = dryRun.value;
  const { confirmWithin } = body;
  const confirmWithinMs = confirmWithin === undefined ? undefined : parseConfirmWithin(confirmWithin);
  if (confirmWithin !== undefined && confirmWithinMs === undefined) {
    return problem(400, `confirmWithin: ${JSON.stringify(confirmWithin.slice(0, 40))} is not ${CONFIRM_WITHIN.words}`, {
      reason: "invalid-body",
    });
  }
  const text = documentOf(context);
  if (!text.ok) return text.error;
  if (services.state.baseline.get() === undefined) {
    const { findings, document } = services.config.parse(text.value);
    if (document === undefined || hasErrors(findings)) return invalid(findings);
    if (confirmWithinMs !== undefined && !isDryRun) {
      return problem(409, "there is nothing to go back to before bootstrap; leave confirmWithin out", {
        reason: "no-baseline",
      });
    }
    return oneAtATime(
      services,
      async () => refuseStale(context) ?? (await answerBeforeBootstrap(context, text.value, isDryRun)),
    );
  }
  const stale = refuseStale(context);
  if (stale !== undefined) return stale;

  const outcome = await services.apply.apply({
    document: text.value,
    acknowledge: body.acknowledge === true,
    isDryRun,
    ...(body.coordinated === true ? { isCoordinated: true } : {}),
    ...(confirmWithinMs === undefined ? {} : { confirmWithinMs }),
    requester,
  });
  if (outcome.kind === "refused") return json(outcome.status, outcome.body);
  const now = services.state.baseline.get();
  const etag = now === undefined ? undefined : etagOf(now);
  return json(200, { ...outcome.answer, ...(etag === undefined ? {} : { etag }) }, etag === undefined ? {} : { etag });
}

const invalid = (problems: readonly Finding[]): Response =>
  problem(400, "the document is not valid, and nothing was changed; see problems", {
    reason: "invalid-document",
    problems,
  });

/** As it was given, or the node's own with the blocks that were given. */
function documentOf({ services, body }: RouteContext<Body>): Result<string, Response> {
  const { document, blocks } = body;
  if ((document === undefined) === (blocks === undefined)) {
    return err(problem(400, "send either a document or blocks", { reason: "invalid-body" }));
  }
  if (blocks === undefined) return ok(document ?? "");
  const own = services.state.baseline.get()?.document.text;
  if (own === undefined) {
    return err(problem(409, "blocks are for a node in service; give this one a document", { reason: "no-baseline" }));
  }
  const { findings } = services.config.parse(blocks);
  if (hasErrors(findings)) return err(invalid(findings));
  const composed = withBlocks(own, blocks);
  if (composed.ok) return composed;
  const { code } = composed.error;
  return err(problem(code === "blocks" ? 400 : 409, sentence(composed.error), { reason: code }));
}

/** No baseline yet: the document becomes source 1, and bootstrap is started again with it. */
async function answerBeforeBootstrap(context: RouteContext<Body>, text: string, isDryRun: boolean): Promise<Response> {
  const { services, requester } = context;
  const { findings, document } = services.config.parse(text);
  const consequence =
    document?.role === undefined
      ? "the node goes on waiting for its role"
      : `the node becomes a ${document.role} of cluster ${document.cluster.name}`;
  const answer: ApplyAnswer = {
    status: isDryRun ? "planned" : "applied",
    ...(document?.role === undefined ? {} : { role: document.role }),
    fields: [],
    restarted: [],
    files: [],
    consequences: [consequence],
    warnings: findings,
  };
  if (isDryRun) return json(200, answer);
  const refused = await acceptDocument(services, text, requester, "apply");
  return refused ?? json(200, answer);
}
