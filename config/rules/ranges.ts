import { DEFAULTS } from "../default-values.ts";
import { contains, overlaps, parseCidr, type Cidr } from "../ip.ts";
import { rangeName, ruleSays } from "../messages/rules.ts";
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
}

/** Compared by address: the network that it lies in may well hold more. */
export function checkVirtualIp(context: RuleContext): void {
  const virtual = context.draft.ha?.virtualIP;
  const address = virtual === undefined ? undefined : parseCidr(virtual);
  if (virtual === undefined || address === undefined) return;
  const path = ["ha", "virtualIP"];
  for (const range of clusterRanges(context).filter(({ cidr }) => contains(cidr, address.ip))) {
    const isRangeLater = context.later(range.path, path) === range.path;
    const says = ruleSays.addressInRange(virtual, range.name, range.text);
    context.report(isRangeLater ? range.path : path, says);
  }
  for (const { path: own, cidr, text, overlay } of overlays(context)) {
    if (cidr.ip.family !== address.ip.family || cidr.ip.value !== address.ip.value) continue;
    context.report(context.later(own, path), ruleSays.overlayIsVirtual(text.split("/")[0] ?? text, overlay));
  }
}

function clusterRanges(context: RuleContext): readonly NamedRange[] {
  return (["podCIDR", "serviceCIDR"] as const).flatMap((field) => {
    const path = ["network", field];
    if (!context.isSound(path)) return [];
    const text = context.draft.network?.[field] ?? DEFAULTS[field];
    const cidr = parseCidr(text);
    return cidr === undefined ? [] : [{ path, name: rangeName[field], text, cidr }];
  });
}

function overlays(context: RuleContext): readonly (NamedRange & { readonly overlay: string | undefined })[] {
  return entries(context.draft.wireguard).flatMap(([index, { name, address }]) => {
    const base: Path = ["wireguard", index, "address"];
    const list =
      typeof address === "string"
        ? [[base, address] as const]
        : entries(address).map(([at, text]) => [[...base, at], text] as const);
    return list.flatMap(([path, text]) => {
      const cidr = parseCidr(text);
      return cidr === undefined ? [] : [{ path, name: rangeName.overlay(name), overlay: name, text, cidr }];
    });
  });
}

function reportOverlap(context: RuleContext, a: NamedRange, b: NamedRange): void {
  const [first, second] = context.later(a.path, b.path) === b.path ? [a, b] : [b, a];
  context.report(second.path, ruleSays.overlap(second.name, second.text, first.name, first.text));
}
