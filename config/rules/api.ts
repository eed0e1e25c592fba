import { hasPrivateKey, readCertificates } from "../certificate.ts";
import { ruleSays } from "../messages/rules.ts";
import type { Path } from "../path.ts";
import { checkExclusive, checkSource, type RuleContext } from "./rule.ts";

/** Who may command the node. */
export function checkApi(context: RuleContext): void {
  const { api } = context.draft;
  if (api === undefined) return;
  checkSource(context, ["api", "operatorCAFrom"], api.operatorCAFrom);
  checkExclusive(context, ["api"], "operatorCA", "operatorCAFrom");
  if (api.operatorCA !== undefined) checkOperatorCa(context, api.operatorCA);
  if (!context.isSound(["api", "enabled"])) return;
  const authorities = ["operatorCA", "operatorCAFrom"].filter((field) => context.given(["api", field]));
  if (api.enabled === false) {
    const later = (field: string): Path => context.later(["api", "enabled"], ["api", field]);
    for (const field of authorities) context.report(later(field), ruleSays.apiOffWith(field));
    if (api.insecure === true) context.report(later("insecure"), ruleSays.insecureOutside());
    if (api.awaitConfig === true) context.report(later("awaitConfig"), ruleSays.apiOffWith("awaitConfig"));
    return;
  }
  if (api.insecure !== true) return;
  const [authority] = authorities;
  if (authority !== undefined) {
    context.report(context.later(["api", "insecure"], ["api", authority]), ruleSays.insecureWithCa());
  } else if (api.enabled !== true) {
    context.report(["api", "insecure"], ruleSays.insecureOutside());
  }
}

/** Exactly one unexpired PEM certificate of a CA that may sign; never a key. */
function checkOperatorCa(context: RuleContext, pem: string): void {
  const path = ["api", "operatorCA"];
  const date = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  if (hasPrivateKey(pem)) {
    context.report(path, ruleSays.caPrivateKey());
    return;
  }
  const certificates = readCertificates(pem);
  const [certificate] = certificates;
  if (certificates.length !== 1) context.report(path, ruleSays.caCount(certificates.length));
  else if (certificate === undefined) context.report(path, ruleSays.caBroken());
  else if (!certificate.isCa) context.report(path, ruleSays.caNotCa());
  else if (!certificate.canSign) context.report(path, ruleSays.caNoCertSign());
  else if (certificate.validToMs < context.nowMs) context.report(path, ruleSays.caExpired(date(certificate.validToMs)));
  else if (certificate.validFromMs > context.nowMs)
    context.report(path, ruleSays.caNotYet(date(certificate.validFromMs)));
}
