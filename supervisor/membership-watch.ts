/**
 * Asks once a minute whether the cluster still knows this node: a Node that somebody deleted is not made again while the
 * kubelet runs, and a kubelet whose certificate counts no more fails without end in a log that nobody reads.
 */
import type { Role } from "../config/document.ts";
import { askMembership } from "../k0s/membership/driver.ts";
import type { Membership } from "../k0s/membership/parse.ts";
import type { Host } from "../kit/ports.ts";
import type { State } from "../state/open.ts";
import { readRemembered } from "./remembered.ts";

/** The node as its kubelet registers it, once it is in service. */
export function kubeletOf(state: Pick<State, "meta" | "baseline">, role: Role | undefined) {
  const baseline = state.meta.get("in-service-at-ms") === undefined ? undefined : state.baseline.get();
  if (baseline === undefined || role === undefined || role === "controller") return undefined;
  const unit = role === "worker" ? ("k0sworker" as const) : ("k0scontroller" as const);
  return { name: baseline.hostname.toLowerCase(), unit };
}

export interface MembershipWatch {
  readonly host: Host;
  readonly state: Pick<State, "events">;
  /** As Kubernetes calls it; absent while it has no kubelet in service. */
  readonly node: () => ReturnType<typeof kubeletOf>;
  /** Of this boot. */
  readonly memoryPath: string;
  readonly say: (line: string) => void;
}

/** What two looks agree on; empty while nothing is wrong. */
export interface Lost {
  readonly is?: Exclude<Membership, "known">;
  readonly sinceMs?: number;
  /** The way back. */
  readonly cure?: string;
}

export interface MembershipWatcher {
  readonly lost: () => Lost;
  /** Until the signal. What fails is said and tried again at the next look. */
  watch(signal: AbortSignal): Promise<void>;
}

const POLL_MS = 60_000;

const SAID: Readonly<Record<Exclude<Membership, "known">, string>> = {
  deleted: "the cluster does not know this node any more: its Node object was deleted",
  refused: "the cluster refuses this node: the kubelet's certificate has ended, or counts no more",
  foreign: "who answers as the API server can't prove to be of the cluster that this node joined",
};

/** k0s takes no new token while it has the kubelet's kubeconfig (facts: section 5). */
const JOIN_ANEW =
  "`cctl reset NODE`, which keeps the data disks, and a document with a new token (`cctl join-token`) bring it back";

function cureOf(is: Exclude<Membership, "known">, unit: string): string {
  if (is === "deleted") return `the kubelet registers when it starts: \`cctl restart NODE ${unit}\``;
  return is === "refused" ? JOIN_ANEW : `look where its address leads; if the cluster was made anew, ${JOIN_ANEW}`;
}

/** Also for a status: with the way back. */
export const tellLost = ({ is, sinceMs, cure }: Lost): string | undefined =>
  is === undefined ? undefined : `${SAID[is]} (since ${new Date(sinceMs ?? 0).toISOString()}); ${cure ?? ""}`;

export function membershipWatcher(watch: MembershipWatch): MembershipWatcher {
  const { host, state, memoryPath, say } = watch;
  let lost: Lost = {};
  let before: Membership | undefined;

  const round = async (): Promise<void> => {
    const node = watch.node();
    const now = node === undefined ? undefined : await askMembership(host, node.name);
    // A controller that restarts, or a cable that was pulled, says nothing about membership.
    if (node === undefined || now === undefined) return;
    const isSure = now === before;
    before = now;
    if (!isSure || now === (lost.is ?? "known")) return;
    const atMs = host.clock.nowMs();
    if (now === "known") {
      lost = {};
      state.events.add({ atMs, kind: "membership", severity: "info", message: "the cluster knows this node again" });
    } else {
      lost = { is: now, sinceMs: atMs, cure: cureOf(now, node.unit) };
      const message = `${SAID[now]}; ${lost.cure ?? ""}`;
      state.events.add({ atMs, kind: "membership", severity: "error", message });
    }
    await host.files.write(memoryPath, JSON.stringify(lost), { mode: 0o600 });
  };

  return {
    lost: () => lost,
    async watch(signal) {
      lost = await readRemembered<Lost>(host, memoryPath, {});
      while (!signal.aborted) {
        try {
          await round();
        } catch (thrown) {
          say(`membership could not be watched: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
        }
        await host.clock.sleep(POLL_MS, signal);
      }
    },
  };
}
