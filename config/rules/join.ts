import { parseIp } from "../ip.ts";
import { ruleSays } from "../messages/rules.ts";
import { readJoinToken } from "../token.ts";
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
  const token = readJoinToken(text);
  if (token === undefined) {
    context.report(path, ruleSays.tokenForm());
    return;
  }
  const { role } = context.draft;
  const wanted = role === undefined || role === "single" ? undefined : role === "worker" ? "worker" : "controller";
  if (role !== undefined && wanted !== undefined && token.role !== wanted) {
    context.report(path, ruleSays.tokenRole(token.role, role));
  }
  const endpoint = context.draft.cluster?.endpoint;
  const server = new URL(token.server).hostname;
  if (endpoint !== undefined && !isSameHost(server, endpoint)) {
    context.report(path, ruleSays.tokenServer(server, endpoint));
  }
  const [ca] = token.certificateAuthority === undefined ? [] : readCertificates(token.certificateAuthority);
  if (ca === undefined) context.report(path, ruleSays.tokenForm());
  else if (ca.validToMs < context.nowMs) {
    context.report(path, ruleSays.tokenExpired(new Date(ca.validToMs).toISOString().slice(0, 10)));
  }
}

/** Names by their letters, addresses by what they are: `fd00::1` and `[fd00:0::1]` are one. */
function isSameHost(a: string, b: string): boolean {
  const [x, y] = [a, b].map((host) => parseIp(host.replace(/^\[|\]$/g, "")));
  if (x === undefined || y === undefined) return a.toLowerCase() === b.toLowerCase();
  return x.family === y.family && x.value === y.value;
}
