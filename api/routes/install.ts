/** Installing without a document: a live system is told which disk to take, and makes the document itself. */
import { z } from "zod";

import { withInstall } from "../../config/with-install.ts";
import { hasErrors } from "../../kit/finding.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import { nameOf } from "../../state/requester.ts";
import { giveConsent } from "../../supervisor/own-consent.ts";
import { acceptDocument } from "../accept-document.ts";
import type { InstallAnswer, InstallOffersAnswer } from "../contract.ts";
import { oneAtATime } from "../one-at-a-time.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";
import type { ApiServices } from "../services.ts";

/** Names that last, never a kernel name alone: the disk that was shown is the one that is written. */
const ref = z.union([
  z.strictObject({ serial: z.string().min(1) }),
  z.strictObject({ wwn: z.string().min(1) }),
  z.string().startsWith("/dev/disk/by-"),
]);
const installSchema = z.strictObject({
  disk: ref,
  mirror: ref.optional(),
  wipe: z.boolean().optional(),
  wipeOwn: z.boolean().optional(),
});
type Body = z.output<typeof installSchema>;

export const INSTALL_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/install",
    role: "readonly",
    summary: "live system: the disks it could install itself to, what each holds, and why not the others",
    run: listOffers,
  },
  withBody({
    method: "POST",
    path: "/v1/install",
    role: "admin",
    summary: "live system: install to this disk; its document, if there is one, gets that block",
    schema: installSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: (context) => oneAtATime(context.services, () => install(context)),
  }),
];

const notLive = (): Response =>
  problem(409, "only a live system installs; start this machine from the ISO or by PXE", { reason: "not-live" });

async function listOffers({ services }: RouteContext): Promise<Response> {
  if (services.install === undefined) return notLive();
  const offers = await services.install.offers();
  if (!offers.ok) return problem(503, sentence(offers.error), { reason: offers.error.code });
  return json(200, offers.value satisfies InstallOffersAnswer);
}

async function install({ services, body, requester }: RouteContext<Body>): Promise<Response> {
  const { install: installer, state, host } = services;
  if (installer === undefined) return notLive();
  const { disk, mirror, wipe = false, wipeOwn = false } = body;
  const block = { disk, ...(mirror === undefined ? {} : { mirror }), wipe };
  const judged = await installer.judge(block, wipeOwn);
  if (!judged.ok) return problem(503, sentence(judged.error), { reason: judged.error.code });
  const { findings, givenUp } = judged.value;
  if (hasErrors(findings)) {
    return problem(409, "this machine can't be installed so, and nothing was changed; see problems", {
      reason: "refused",
      problems: findings,
    });
  }
  const own = await ownText(services);
  if (!own.ok) return own.error;
  const text = withInstall(own.value, block);
  if (!text.ok) return problem(409, sentence(text.error), { reason: text.error.code });
  const composed = services.config.parse(text.value);
  if (composed.document === undefined) {
    return problem(409, "with this install block the present document is not valid; see problems", {
      reason: "invalid-document",
      problems: composed.findings,
    });
  }
  // Before the document: whoever reads it must find what was agreed to.
  if (wipeOwn && givenUp.length > 0) {
    giveConsent(state, {
      atMs: host.clock.nowMs(),
      by: nameOf(requester),
      disks: givenUp.map(({ identity }) => identity),
    });
  }
  const refused = await acceptDocument(services, text.value, requester, "install");
  return refused ?? json(200, { installing: true, warnings: findings } satisfies InstallAnswer);
}

/** An intent that is there but can't be read is not replaced by another one. */
async function ownText({ config }: ApiServices): Promise<Result<string, Response>> {
  const own = await config.findOwn();
  if (own.kind === "none") return ok("");
  if (own.kind === "failed") return err(problem(409, sentence(own.error), { reason: own.error.code }));
  const { document, findings } = config.parse(own.text);
  if (document !== undefined) return ok(own.text);
  return err(
    problem(409, `the document from ${own.origin} is not valid; correct it or take it away, then install`, {
      reason: "invalid-document",
      problems: findings,
    }),
  );
}
