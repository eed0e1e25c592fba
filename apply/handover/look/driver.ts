/** How it stands with the hand-over on this node: looked at, and planned. */
import type { AppError } from "../../../kit/app-error.ts";
import type { Host } from "../../../kit/ports.ts";
import { ok, type Result } from "../../../kit/result.ts";
import type { Document } from "../../../config/document.ts";
import { ANY_TIME } from "../../../config/load.ts";
import { readControlPlane } from "../../../k0s/cluster/driver.ts";
import type { ControlPlane } from "../../../k0s/cluster/model.ts";
import { readObject } from "../../../k0s/objects/driver.ts";
import type { Baseline, HandoverDone } from "../../../state/model.ts";
import { mayBeSeveral, ownOf } from "../../cluster-content.ts";
import type { ApplyDependencies } from "../../service/model.ts";
import { judgeApplication, keptFolder, modeStanding, stackFolder, type Standing, type Wish, wishOf } from "../model.ts";

export type HandoverDependencies = Pick<ApplyDependencies, "host" | "state" | "version" | "parse" | "timeoutMs">;

/** A cluster that is busy starting may take long to answer; nothing waits for it meanwhile. */
const LOOK_TIMEOUT_MS = 20_000;

/** As it is recorded. */
export interface RecordedNode {
  readonly baseline: Baseline;
  readonly document: Document;
  readonly wish: Wish | undefined;
}

export function nodeOf({ state, parse }: Pick<HandoverDependencies, "state" | "parse">): RecordedNode | undefined {
  const baseline = state.baseline.get();
  const document = baseline && parse(baseline.document.text, ANY_TIME).document;
  return baseline === undefined || document === undefined ? undefined : { baseline, document, wish: wishOf(document) };
}

/** How it stands now, recorded. Only `automatic` asks the cluster; undefined: this node has nothing to hand over. */
export async function lookAtHandover(dependencies: HandoverDependencies): Promise<Standing | undefined> {
  const { host, state } = dependencies;
  const node = nodeOf(dependencies);
  if (node?.wish === undefined || state.handover.done() !== undefined) return state.handover.condition();
  const standing = await readStanding(host, node, node.wish);
  const before = state.handover.condition();
  // Somebody may have handed over, or applied another document, while the cluster was asked.
  if (state.handover.done() !== undefined) return before;
  // That nobody answers for a moment is no news of the Application.
  if (standing.reason === "NoAnswer" && before?.status === "True") return before;
  const atMs = host.clock.nowMs();
  state.handover.set({ ...standing, atMs });
  if (before?.status !== standing.status || standing.reason === "WillNeverSync") {
    const severity = standing.reason === "WillNeverSync" ? "warning" : "info";
    if (before?.message !== standing.message) {
      state.events.add({ atMs, kind: "handover", severity, message: standing.message });
    }
  }
  return standing;
}

/** One that failed is not tried again by itself: each try stops k0s. */
export const isGivenUp = (dependencies: HandoverDependencies): boolean =>
  dependencies.state.handover.condition()?.reason === "Failed" && nodeOf(dependencies)?.wish?.mode === "automatic";

async function readStanding(host: Host, { baseline, document }: RecordedNode, wish: Wish): Promise<Standing> {
  if (wish.mode !== "automatic") return modeStanding(wish.mode);
  const standing = judgeApplication(wish.application, await readObject(host, wish.application, LOOK_TIMEOUT_MS));
  if (standing.status !== "True" || !mayBeSeveral(document)) return standing;
  const several = await readControlPlane(host, ownOf(baseline));
  if (!several.ok) return { status: "False", reason: "NoAnswer", message: several.error.message };
  const { members } = several.value;
  if (members.length < 2) return standing;
  const verb = `\`cctl handover ${members.join(" ")}\``;
  return { ...standing, message: `${standing.message}: ${verb} hands the CNI over, one controller after the other` };
}

export interface HandoverPlan {
  /** What the node ran when it was made. */
  readonly document: number;
  readonly stack: string;
  readonly from: string;
  readonly to: string;
  /** Where there may be others. */
  readonly controlPlane?: ControlPlane;
}

export type PlannedHandover =
  | { readonly kind: "planned"; readonly plan: HandoverPlan }
  | { readonly kind: "done"; readonly done: HandoverDone; readonly controlPlane?: ControlPlane }
  | { readonly kind: "refused"; readonly status: 409 | 503; readonly reason: string; readonly error: string };

const refused = (status: 409 | 503, reason: string, error: string): PlannedHandover => ({
  kind: "refused",
  status,
  reason,
  error,
});

/** What a hand-over would do now, or why it may not. Changes nothing. `known`: what has just been looked at. */
export async function planHandover(dependencies: HandoverDependencies, known?: Standing): Promise<PlannedHandover> {
  const { host, state } = dependencies;
  const node = nodeOf(dependencies);
  if (node === undefined) return refused(409, "not-in-service", "this node is in no cluster yet");
  const several = mayBeSeveral(node.document) ? await readControlPlane(host, ownOf(node.baseline)) : undefined;
  const controlPlane = several?.ok === true ? { controlPlane: several.value } : {};
  const done = state.handover.done();
  if (done !== undefined) return { kind: "done", done, ...controlPlane };
  const { wish } = node;
  if (wish === undefined) {
    return refused(
      409,
      "no-handover",
      "the document of this node has no network.handover, so there is nothing to hand over",
    );
  }
  if (wish.mode === "disabled") {
    return refused(
      409,
      "handover-disabled",
      "network.handover.mode is disabled; apply a document with manual or automatic first",
    );
  }
  if (several?.ok === false) {
    return refused(
      503,
      several.error.code,
      `who else is a controller can't be asked, and they go one at a time: ${several.error.message}; ask again when k0s answers`,
    );
  }
  if (wish.mode === "automatic") {
    const { status, message } = known ?? (await readStanding(host, node, wish));
    if (status !== "True") {
      return refused(409, "not-synced", `${message}; with network.handover.mode manual it is yours to decide`);
    }
  }
  const [from, to] = [stackFolder(wish.stack), keptFolder(wish.stack)];
  const places = await whereIs(host, from, to);
  if (!places.ok) return refused(503, places.error.code, places.error.message);
  if (places.value === "both") {
    const error = `${to} is there already, and the files of ${wish.stack} would be kept there: move it away`;
    return refused(409, "kept-before", error);
  }
  const plan = { document: node.baseline.document.id, stack: wish.stack, from, to, ...controlPlane };
  return { kind: "planned", plan };
}

export type Place = "in" | "out" | "both" | "neither";

export async function whereIs(host: Host, from: string, to: string): Promise<Result<Place, AppError>> {
  const inside = await host.files.stat(from);
  if (!inside.ok) return inside;
  const outside = await host.files.stat(to);
  if (!outside.ok) return outside;
  if (inside.value !== null) return ok(outside.value === null ? "in" : "both");
  return ok(outside.value === null ? "neither" : "out");
}
