import { parseCidr, parseIp } from "../ip.ts";
import { ruleSays } from "../messages/rules.ts";
import { checkExclusive, checkSource, entries, type RuleContext } from "./rule.ts";

const FIELDS = ["virtualIP", "interface", "virtualRouterID", "unicastPeers", "authPass", "authPassFrom"];

/** One address for several controllers. */
export function checkHa(context: RuleContext): void {
  const { ha, role } = context.draft;
  if (ha === undefined) return;
  checkSource(context, ["ha", "authPassFrom"], ha.authPassFrom);
  if (!context.isSound(["ha", "enabled"])) return;
  if (ha.enabled !== true) {
    for (const field of FIELDS.filter((name) => context.given(["ha", name]))) {
      context.report(["ha", field], ruleSays.notEnabled("ha", field));
    }
    return;
  }
  if (role === "single" || role === "worker") context.report(["ha", "enabled"], ruleSays.haRole(role));
  checkNeeds(context);
  checkEndpoint(context);
  checkPeers(context);
  if (/^[#!]/.test(ha.authPass ?? "")) context.report(["ha", "authPass"], ruleSays.passwordComment());
}

/** VRRP goes to addresses that stay, not to the one that moves, and of its family. */
function checkPeers(context: RuleContext): void {
  const { virtualIP, unicastPeers } = context.draft.ha ?? {};
  const virtual = virtualIP === undefined ? undefined : parseCidr(virtualIP)?.ip;
  for (const [index, text] of entries(unicastPeers)) {
    const ip = parseIp(text);
    if (ip === undefined || virtual === undefined || virtualIP === undefined) continue;
    const at = context.later(["ha", "virtualIP"], ["ha", "unicastPeers", index]);
    if (ip.family !== virtual.family) context.report(at, ruleSays.peerFamily(text, virtualIP));
    else if (ip.value === virtual.value) context.report(at, ruleSays.peerIsVirtual(text));
  }
}

function checkNeeds(context: RuleContext): void {
  const isGiven = (field: string): boolean => context.given(["ha", field]);
  if (!context.given(["cluster", "endpoint"]) && context.isSound(["cluster"])) {
    context.report(["cluster", "endpoint"], ruleSays.haEndpointMissing());
  }
  if (!isGiven("virtualIP")) context.report(["ha", "virtualIP"], ruleSays.haAddressMissing());
  const isOneAtMost = checkExclusive(context, ["ha"], "authPass", "authPassFrom");
  if (isOneAtMost && !isGiven("authPass") && !isGiven("authPassFrom")) {
    context.report(["ha", "authPass"], ruleSays.secretMissing("authPass", "authPassFrom"));
  }
}

/** The endpoint is the address itself, or a name that only the node can resolve. */
function checkEndpoint(context: RuleContext): void {
  const endpoint = context.draft.cluster?.endpoint;
  const virtualIP = context.draft.ha?.virtualIP;
  const address = virtualIP === undefined ? undefined : parseCidr(virtualIP)?.ip;
  const ip = endpoint === undefined ? undefined : parseIp(endpoint);
  if (endpoint === undefined || virtualIP === undefined || ip === undefined || address === undefined) return;
  if (ip.family !== address.family || ip.value !== address.value) {
    context.report(["cluster", "endpoint"], ruleSays.haEndpoint(endpoint, virtualIP));
  }
}
