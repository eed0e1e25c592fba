/** What happens to peers while the node runs: look after look → what to ask, and what to say. Pure. */
import type { WireguardSpec } from "../config/document.ts";
import { splitEndpoint } from "./endpoints.ts";
import type { InterfaceStatus, PeerStatus } from "./model.ts";
import type { PeerHistory, PeerState } from "./peers.ts";
import { DEFAULT_MTU, hasSession, isTroubled, judgePeer, peerIn, peerName, probeTarget } from "./peers.ts";

export type WatchedOverlay = Pick<WireguardSpec, "name" | "address" | "mtu" | "peers">;

export interface PeerMemory extends PeerHistory {
  readonly overlay: string;
  readonly publicKey: string;
  /** Of the last look; what is in two of them is said. */
  readonly seen?: PeerState;
  readonly told?: PeerState;
  /** Unix seconds. */
  readonly pingedAt?: number;
  readonly sizedAt?: number;
}

/** Kept over restarts of the daemon, not over boots. */
export type OverlayMemory = readonly PeerMemory[];

/** Two small packets, or two as large as the overlay takes. */
export interface PeerProbe {
  readonly kind: "ping" | "size";
  readonly overlay: string;
  readonly publicKey: string;
  readonly target: string;
  /** Of the whole packet; for `size`. */
  readonly bytes: number;
}

export interface OverlayEvent {
  readonly kind: "overlay-peer";
  readonly severity: "info" | "warning";
  readonly message: string;
}

const PING_AGAIN_SECONDS = 600;
const SIZE_AGAIN_SECONDS = 1_800;
/** A person is at work on it, who wants to see that it helped. */
const NARROW_AGAIN_SECONDS = 300;
/** So that an overlay of many peers is no load when all of them come or go at once. */
const PROBES_A_LOOK = 4;

export function decide(
  memory: OverlayMemory,
  specs: readonly WatchedOverlay[],
  interfaces: readonly InterfaceStatus[],
  nowSeconds: number,
): { readonly memory: OverlayMemory; readonly probes: readonly PeerProbe[]; readonly events: readonly OverlayEvent[] } {
  const events: OverlayEvent[] = [];
  const probes: PeerProbe[] = [];
  const peers = specs
    // Before it is made, and while networkd has dropped it, nothing can be said of its peers.
    .filter(({ name }) => interfaces.some((each) => each.name === name))
    .flatMap((spec) => spec.peers.map((peer) => ({ spec, peer })));
  const next = peers.map(({ spec, peer }): PeerMemory => {
    const status = peerIn(interfaces, spec.name, peer.publicKey);
    const before = remembered(memory, spec.name, peer.publicKey);
    const now = age(before, status, nowSeconds);
    const ownKey = interfaces.find(({ name }) => name === spec.name)?.publicKey;
    const { state, cause } = judgePeer({ ...spec, ownKey }, peer, status, now, nowSeconds);
    const probe = dueProbe(spec, peer, status, { ...now, seen: state }, nowSeconds);
    if (probe !== undefined) probes.push(probe);
    const isNews = state !== before.told && (state === "up" || (isTroubled(state) && state === before.seen));
    if (isNews) {
      const what = `overlay ${spec.name}: peer ${peerName(peer)}`;
      events.push({
        kind: "overlay-peer",
        severity: state === "up" ? "info" : "warning",
        message: state === "up" ? `${what} is heard` : `${what}: ${cause ?? state}`,
      });
    }
    return { ...now, seen: state, ...(isNews ? { told: state } : {}) };
  });
  return { memory: next, probes: probes.slice(0, PROBES_A_LOOK), events };
}

/** What came back of a probe; `undefined`: nothing that would mean anything. */
export function withAnswer(
  memory: OverlayMemory,
  probe: PeerProbe,
  answer: boolean | undefined,
  nowSeconds: number,
): OverlayMemory {
  return memory.map((peer) => {
    if (peer.overlay !== probe.overlay || peer.publicKey !== probe.publicKey) return peer;
    if (probe.kind === "ping") {
      return { ...peer, pingedAt: nowSeconds, ...(answer === undefined ? {} : { answersPing: answer }) };
    }
    const { takesFullSize: _, ...rest } = peer;
    return { ...rest, sizedAt: nowSeconds, ...(answer === undefined ? {} : { takesFullSize: answer }) };
  });
}

export const remembered = (memory: OverlayMemory, overlay: string, publicKey: string): PeerMemory =>
  memory.find((peer) => peer.overlay === overlay && peer.publicKey === publicKey) ?? { overlay, publicKey };

/** Is anything sent to it that is not answered? Its other addresses are tried only then. */
export function isUnanswered({ sentAtLoss }: PeerHistory, status: PeerStatus): boolean {
  return status.latestHandshake === undefined
    ? status.sentBytes > 0
    : status.sentBytes > (sentAtLoss ?? status.sentBytes);
}

/** What was found out about the other side of a session does not hold for the next one. */
function age(before: PeerMemory, status: PeerStatus | undefined, nowSeconds: number): PeerMemory {
  if (status === undefined) return before;
  if (hasSession(status, nowSeconds)) {
    const { sentAtLoss: _, answersPing: __, pingedAt: ___, ...rest } = before;
    return rest;
  }
  const { takesFullSize: _, sizedAt: __, ...rest } = before;
  return status.latestHandshake === undefined ? rest : { ...rest, sentAtLoss: before.sentAtLoss ?? status.sentBytes };
}

const NO_ANSWER = new Set<PeerState>(["silent", "unreachable", "stale"]);

function dueProbe(
  spec: WatchedOverlay,
  peer: WatchedOverlay["peers"][number],
  status: PeerStatus | undefined,
  { seen, pingedAt, sizedAt }: PeerMemory,
  nowSeconds: number,
): PeerProbe | undefined {
  const base = { overlay: spec.name, publicKey: peer.publicKey, bytes: spec.mtu ?? DEFAULT_MTU };
  const isDue = (at: number | undefined, again: number): boolean => at === undefined || nowSeconds - at >= again;
  if (seen !== undefined && NO_ANSWER.has(seen)) {
    const target = splitEndpoint(status?.endpoint ?? "")?.host;
    return target !== undefined && isDue(pingedAt, PING_AGAIN_SECONDS) ? { ...base, kind: "ping", target } : undefined;
  }
  if (seen !== "up" && seen !== "narrow") return undefined;
  const target = probeTarget(spec, peer);
  const again = seen === "narrow" ? NARROW_AGAIN_SECONDS : SIZE_AGAIN_SECONDS;
  return target !== undefined && isDue(sizedAt, again) ? { ...base, kind: "size", target } : undefined;
}

/** Two packets that may not be broken up, `bytes` large with all their headers (ping(8)). */
export function pingArgv(
  target: string,
  options: { readonly device?: string; readonly bytes?: number } = {},
): string[] {
  const headers = target.includes(":") ? 48 : 28;
  return [
    "ping",
    "-nq",
    "-c2",
    "-W2",
    ...(options.bytes === undefined ? [] : ["-Mdo", `-s${options.bytes - headers}`]),
    ...(options.device === undefined ? [] : [`-I${options.device}`]),
    target,
  ];
}
