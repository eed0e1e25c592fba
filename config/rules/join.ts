import { ruleSays } from "../messages/rules.ts";
import { decodeJoinToken, NO_AUTHORITY, serverElsewhere } from "../token.ts";
import { readCertificates } from "../certificate.ts";
import { checkExclusive, checkSource, type RuleContext } from "./rule.ts";

export function checkJoin(context: RuleContext): void {
  const { join, role } = context.draft;
  const hasToken = context.given(["join", "token"]);
  const hasSource = context.given(["join", "tokenFrom"]);
  checkSource(context, ["join", "tokenFrom"], join?.tokenFrom);
  checkExclusive(context, ["join"], "token", "tokenFrom");
  if (role === "single" && (hasToken || hasSource)) context.report(["join"], ruleSays.singleJoins());
  if (role === "worker" && !hasToken && !hasSource && context.isSound(["join"])) {
    context.report(["join", "token"], ruleSays.tokenMissing());
  }
  if (join?.token !== undefined) checkToken(context, join.token);
}

/** What can be known offline: its form, whom it lets in, and whether the CA in it is still valid. */
function checkToken(context: RuleContext, text: string): void {
  const path = ["join", "token"];
  const token = decodeJoinToken(text);
  if ("why" in token) {
    context.report(path, ruleSays.tokenForm(token.why));
    return;
  }
  const { role } = context.draft;
  const wanted = role === undefined || role === "single" ? undefined : role === "worker" ? "worker" : "controller";
  if (role !== undefined && wanted !== undefined && token.role !== wanted) {
    context.report(path, ruleSays.tokenRole(token.role, role));
  }
  const elsewhere = serverElsewhere(token, context.draft.cluster?.endpoint);
  if (elsewhere !== undefined) context.report(path, elsewhere);
  const [ca] = token.certificateAuthority === undefined ? [] : readCertificates(token.certificateAuthority);
  if (ca === undefined) context.report(path, ruleSays.tokenForm(NO_AUTHORITY));
  else if (ca.validToMs < context.nowMs) {
    context.report(path, ruleSays.tokenExpired(new Date(ca.validToMs).toISOString().slice(0, 10)));
  }
}
