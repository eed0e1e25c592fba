import { z } from "zod";

import { withOperatorCa } from "../../config/with-operator-ca.ts";
import { checkProof } from "../../pki/proof.ts";
import type { CaNonceAnswer } from "../contract.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";

const rotateSchema = z.strictObject({
  operatorCA: z.string().meta({ description: "certificate of the new CA, PEM" }),
  proof: z
    .strictObject({ certificate: z.string(), signature: z.string() })
    .meta({ description: "an admin's certificate of the new CA, and its signature over the nonce" }),
});
type Body = z.output<typeof rotateSchema>;

/** Enough to come with the new certificate, from however far away. */
const ROTATE_WITHIN_MS = 10 * 60_000;

export const CA_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/ca/rotate",
    role: "admin",
    summary: "a nonce for the proof of a new operator CA; good for one try, for ten minutes",
    run: ({ services }) => json(200, { nonce: services.caChallenge.give() } satisfies CaNonceAnswer),
  },
  withBody({
    method: "POST",
    path: "/v1/ca/rotate",
    role: "admin",
    summary: "obey a new operator CA; the old one ends with the first connection of the new one, else all is as before",
    schema: rotateSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: rotate,
  }),
];

async function rotate({ services, body, requester }: RouteContext<Body>): Promise<Response> {
  const { state, host, caChallenge } = services;
  const nonce = caChallenge.take();
  if (nonce === undefined) {
    return problem(409, "there is no nonce to be signed; GET /v1/ca/rotate gives one", { reason: "no-nonce" });
  }
  const nowMs = Math.max(host.clock.nowMs(), state.meta.timeFloorMs());
  const isRevoked = (issuer: string, serial: string): boolean => state.claim.isRevoked(issuer, serial);
  const authority = checkProof({ ...body, nonce }, { nowMs, isRevoked });
  if (!authority.ok) return problem(400, sentence(authority.error), { reason: authority.error.code });
  if (authority.value.fingerprint === state.claim.get()?.fingerprint) {
    return problem(409, "this node obeys that CA already; nothing was changed", { reason: "same-ca" });
  }
  const own = state.baseline.get()?.document.text;
  if (own === undefined) {
    return problem(409, "this node is in no cluster yet; claim it with the new CA instead", {
      reason: "not-in-service",
    });
  }
  const text = withOperatorCa(own, authority.value.pem);
  if (!text.ok) return problem(409, sentence(text.error), { reason: text.error.code });
  const outcome = await services.apply.apply({
    document: text.value,
    acknowledge: false,
    isDryRun: false,
    confirmWithinMs: ROTATE_WITHIN_MS,
    isConfirmedByConnection: true,
    requester,
  });
  return outcome.kind === "answer" ? json(200, outcome.answer) : json(outcome.status, outcome.body);
}
