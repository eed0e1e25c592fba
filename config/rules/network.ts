import { DEFAULTS } from "../default-values.ts";
import { contains, overlaps, parseCidr, type Cidr } from "../ip.ts";
import { ruleSays } from "../messages/rules.ts";
import type { Path } from "../path.ts";
import { entries, type RuleContext } from "./rule.ts";

interface NamedRange {
  readonly path: Path;
  readonly name: string;
  readonly text: string;
  readonly cidr: Cidr;
}

/** Pods, services, overlays and the HA address keep out of each other's way. */
export function checkRanges(context: RuleContext): void {
  const cluster = clusterRanges(context);
  for (const [index, range] of cluster.entries()) {
    const others = [...cluster.slice(index + 1), ...overlays(context)];
    for (const other of others.filter(({ cidr }) => overlaps(cidr, range.cidr))) reportOverlap(context, range, other);
  }
  const virtual = context.draft.ha?.virtualIP;
  const address = virtual === undefined ? undefined : parseCidr(virtual);
  if (virtual === undefined || address === undefined) return;
  const path = ["ha", "virtualIP"];
  for (const range of cluster.filter(({ cidr }) => contains(cidr, address.ip))) {
    const isRangeLater = context.later(range.path, path) === range.path;
    const says = ruleSays.addressInRange("the HA address", virtual, `the ${range.name}`, range.text);
    context.report(isRangeLater ? range.path : path, says);
  }
}

function clusterRanges(context: RuleContext): readonly NamedRange[] {
  const fields = [
    ["podCIDR", "pod range"],
    ["serviceCIDR", "service range"],
  ] as const;
  return fields.flatMap(([field, name]) => {
    const path = ["network", field];
    if (!context.isSound(path)) return [];
    const text = context.draft.network?.[field] ?? DEFAULTS[field];
    const cidr = parseCidr(text);
    return cidr === undefined ? [] : [{ path, name, text, cidr }];
  });
}

function overlays(context: RuleContext): readonly NamedRange[] {
  return entries(context.draft.wireguard).flatMap(([index, { name, address }]) => {
    const base: Path = ["wireguard", index, "address"];
    const list =
      typeof address === "string"
        ? [[base, address] as const]
        : entries(address).map(([at, text]) => [[...base, at], text] as const);
    return list.flatMap(([path, text]) => {
      const cidr = parseCidr(text);
      return cidr === undefined ? [] : [{ path, name: `address of ${name ?? "an overlay"}`, text, cidr }];
    });
  });
}

function reportOverlap(context: RuleContext, a: NamedRange, b: NamedRange): void {
  const [first, second] = context.later(a.path, b.path) === b.path ? [a, b] : [b, a];
  context.report(second.path, ruleSays.overlap(`the ${second.name}`, second.text, `the ${first.name}`, first.text));
}

/** A CNI of one's own may be handed over to GitOps. */
export function checkHandover(context: RuleContext): void {
  const { network, manifests } = context.draft;
  const handover = network?.handover;
  if (handover === undefined) return;
  const path = ["network", "handover"];
  if (context.isSound(["network", "cni"]) && network?.cni !== "custom") {
    context.report(path, ruleSays.handoverCni());
    return;
  }
  const { mode } = handover;
  const isGiven = (field: string): boolean => context.given([...path, field]);
  if (mode !== undefined && mode !== "disabled" && !isGiven("stack")) {
    context.report([...path, "stack"], ruleSays.handoverNeeds(mode, "stack"));
  }
  if (mode === "automatic" && !isGiven("application")) {
    context.report([...path, "application"], ruleSays.handoverNeeds(mode, "application"));
  }
  const { stack } = handover;
  const names = (manifests ?? []).map((entry) => entry?.name);
  if (stack === undefined || names.includes(stack) || names.includes(undefined)) return;
  if (context.isSound(["manifests"]) || names.length > 0) {
    context.report([...path, "stack"], ruleSays.handoverStack(stack));
  }
}
