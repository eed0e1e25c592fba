/** Claiming: giving an unowned node the CA whose operators it obeys. One way. */
import { z } from "zod";

import type { Document } from "../../config/document.ts";
import { hasErrors } from "../../kit/finding.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import type { Authority } from "../../pki/authority.ts";
import { checkAuthority } from "../../pki/authority.ts";
import type { Requester } from "../../state/model.ts";
import { nameOf } from "../../state/requester.ts";
import { giveConsent } from "../../supervisor/own-consent.ts";
import { isReKeyed } from "../../supervisor/re-key.ts";
import { checkBody, readJsonBody } from "../body.ts";
import type { EnrollAnswer } from "../contract.ts";
import type { Enrolment } from "../enrolment.ts";
import type { Wire } from "../http-server.ts";
import { oneAtATime } from "../one-at-a-time.ts";
import { json, problem, sentence } from "../problem.ts";
import { DOCUMENT_BODY_BYTES } from "../route.ts";
import type { ApiServices } from "../services.ts";

export const ENROLL_PATH = "/v1/enroll";

const codeSchema = z.object({ code: z.string().optional() });

export const enrollSchema = z.strictObject({
  code: z.string().optional(),
  operatorCA: z.string(),
  document: z.string().optional(),
  acknowledge: z.boolean().optional(),
  /** What this node itself made may be lost, once, where its document says wipe. */
  wipeOwn: z.boolean().optional(),
});
type Body = z.output<typeof enrollSchema>;

/** Wrong codes in the audit, so that guessing can't fill the disk; the count goes on in the throttle. */
const AUDITED_WRONG_CODES = 100;
const wrongCodes = new WeakMap<ApiServices, number>();

export async function enroll(services: ApiServices, request: Request, wire: Wire): Promise<Response> {
  const { state, enrolment } = services;
  if (services.stateProblem !== undefined) {
    return problem(503, sentence(services.stateProblem), { reason: services.stateProblem.code });
  }
  const taken = refuseTaken(state);
  if (taken !== undefined) return taken;
  if (enrolment === undefined) return problem(409, "this node can't be claimed now", { reason: "not-claimable" });

  const read = await readJsonBody(request, wire, DOCUMENT_BODY_BYTES);
  if (!read.ok) return read.error;
  const refused = await checkCode(services, enrolment, read.value, wire);
  if (refused !== undefined) return refused;
  const checked = checkBody(enrollSchema, read.value);
  if (!checked.ok) return checked.error;
  const body = checked.value as Body;
  // Looked at again: another claim may have come first, and the document of the one that lost must not be written.
  return oneAtATime(services, async () => refuseTaken(state) ?? (await claim(services, enrolment, body, wire)));
}

function refuseTaken(state: ApiServices["state"]): Response | undefined {
  if (state.claim.get() !== undefined) return problem(409, "this node is claimed already", { reason: "claimed" });
  // Invariant 2: what is in a cluster can't be claimed over the network, unless somebody at its console said so.
  if (!isMember(state) || isReKeyed(state)) return undefined;
  return problem(409, "this node is in service and can't be claimed any more; use its console, or reset it", {
    reason: "in-service",
  });
}

/** Before anything else of the body is looked at. */
async function checkCode(
  services: ApiServices,
  enrolment: Enrolment,
  body: unknown,
  wire: Wire,
): Promise<Response | undefined> {
  if (enrolment.isInsecure()) return undefined;
  const given = codeSchema.safeParse(body);
  const code = (given.success ? given.data.code : undefined) ?? "";
  // No guess, so it does not count as one: a script that forgot it would use up the tries of whoever has it.
  if (code.trim() === "")
    return problem(401, "the code is missing; it is on the node's console", { reason: "no-code" });
  const attempt = await enrolment.attempt(code);
  if (attempt.kind === "right") return undefined;
  if (attempt.kind === "throttled") {
    const seconds = Math.ceil(attempt.waitMs / 1000);
    return problem(
      429,
      `too many wrong codes: one try in ten seconds for everybody together; wait ${seconds} s`,
      { reason: "throttled" },
      { "retry-after": String(seconds) },
    );
  }
  const count = (wrongCodes.get(services) ?? 0) + 1;
  wrongCodes.set(services, count);
  if (count <= AUDITED_WRONG_CODES) audit(services, strangerAt(wire), 401, "wrong-code");
  return problem(401, "the code is wrong; it is on the node's console", { reason: "wrong-code" });
}

/** From the moment that k0s is first started, not only once bootstrap is over. */
function isMember(state: ApiServices["state"]): boolean {
  if (state.baseline.get() !== undefined || state.meta.get("in-service-at-ms") !== undefined) return true;
  return state.operations
    .list()
    .some(
      ({ kind, steps }) =>
        kind === "bootstrap" && steps.some(({ id, state: at }) => id === "k0s:start" && at !== "pending"),
    );
}

async function claim(services: ApiServices, enrolment: Enrolment, body: Body, wire: Wire): Promise<Response> {
  const { state, host } = services;
  const nowMs = host.clock.nowMs();
  const authority = checkAuthority(body.operatorCA, Math.max(nowMs, state.meta.timeFloorMs()));
  if (!authority.ok) {
    const { code, message, hint } = authority.error;
    const finding = {
      severity: "error" as const,
      code,
      path: "operatorCA",
      message,
      ...(hint === undefined ? {} : { hint }),
    };
    return problem(400, sentence(authority.error), { reason: code, problems: [finding] });
  }
  if (body.document !== undefined && (await services.bootstrap.settled()) === "running") {
    return problem(
      409,
      "this node is being provisioned; claim it without a document, or wait until that ends or fails",
      { reason: "busy" },
    );
  }
  const isReclaimed = isMember(state);
  if (isReclaimed && (body.document !== undefined || body.wipeOwn === true)) {
    return problem(409, "this node is in service: claim it without a document, then `cctl apply` one", {
      reason: "in-service",
    });
  }
  const own = isReclaimed ? undefined : await checkOwnDocument(services, body);
  if (own !== undefined) return own;
  const sent = checkSentDocument(services, body, authority.value);
  if (!sent.ok) return sent.error;

  const { pem, fingerprint } = authority.value;
  const requester: Requester = { kind: "operator", name: "", role: "admin", fingerprint, address: wire.address };
  if (body.document !== undefined) {
    const written = await host.files.write(services.paths.config, body.document, { mode: 0o600 });
    if (!written.ok) return problem(503, sentence(written.error), { reason: "not-written" });
  }
  const isInsecure = enrolment.isInsecure();
  const recorded = state.transaction(() => {
    const claimed = state.claim.record({
      operatorCA: pem,
      fingerprint,
      atMs: nowMs,
      by: isInsecure ? "insecure" : "enroll",
    });
    if (!claimed.ok) return claimed;
    state.meta.remove("re-keyed");
    if (body.wipeOwn === true) giveConsent(state, { atMs: nowMs, by: nameOf(requester) });
    if (body.document !== undefined) {
      state.documents.add({ text: body.document, atMs: nowMs, requester, origin: "enroll" });
    }
    state.events.add({
      atMs: nowMs,
      kind: "claimed",
      severity: isInsecure ? "warning" : "info",
      message: `claimed by ${fingerprint} from ${wire.address}${isInsecure ? ", without any code" : ""}`,
    });
    return claimed;
  });
  if (!recorded.ok) return problem(409, "this node is claimed already", { reason: "claimed" });
  audit(services, requester, 200, isInsecure ? "claimed-insecurely" : "claimed");
  // The claim stands whatever comes of these: the code is no use any more, and bootstrap looks again at each boot.
  await enrolment.close();
  if (!isReclaimed) await services.bootstrap.poke();
  const operation = state.operations.running()?.id;
  const answer: EnrollAnswer = {
    enrolled: true,
    operatorCA: fingerprint,
    ...(operation === undefined ? {} : { operation }),
  };
  return json(200, answer);
}

/** A node that would bootstrap at once from its own document is not claimed without saying so. */
async function checkOwnDocument(services: ApiServices, body: Body): Promise<Response | undefined> {
  if (body.document !== undefined || body.acknowledge === true) return undefined;
  const own = await services.config.findOwn();
  if (own.kind !== "found") return undefined;
  const { document } = services.config.parse(own.text);
  if (document?.role === undefined || document.api?.awaitConfig === true) return undefined;
  const name = document.node.name === undefined ? "" : ` named ${document.node.name}`;
  return problem(
    409,
    `once claimed, this node bootstraps at once from ${own.origin}: a ${document.role}${name} of cluster ${document.cluster.name}; acknowledge that, or send another document`,
    { reason: "would-bootstrap" },
  );
}

function checkSentDocument(
  services: ApiServices,
  body: Body,
  authority: Authority,
): Result<Document | undefined, Response> {
  if (body.document === undefined) return ok(undefined);
  const { findings, document } = services.config.parse(body.document);
  if (document === undefined || hasErrors(findings)) {
    return err(
      problem(400, "the document is not valid, and nothing was changed; see problems", {
        reason: "invalid-document",
        problems: findings,
      }),
    );
  }
  const inline = document.api?.operatorCA;
  if (inline === undefined) return ok(document);
  const other = checkAuthority(inline, services.host.clock.nowMs());
  if (other.ok && other.value.fingerprint === authority.fingerprint) return ok(document);
  return err(
    problem(400, "the document names another operator CA than the one that claims; send the same one, or none", {
      reason: "other-ca",
      problems: [
        { severity: "error", code: "conflict", path: "api.operatorCA", message: "is another CA than the claim's" },
      ],
    }),
  );
}

const strangerAt = (wire: Wire): Requester => ({
  kind: "operator",
  name: "",
  role: "readonly",
  fingerprint: "",
  address: wire.address,
});

function audit(services: ApiServices, requester: Requester, status: number, outcome: string): void {
  services.state.audit.add({
    atMs: services.host.clock.nowMs(),
    requester,
    route: `POST ${ENROLL_PATH}`,
    status,
    outcome,
  });
}
