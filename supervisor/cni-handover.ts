/**
 * `network.handover.mode: automatic`, as long as the daemon runs: a task of its own, so that a cluster that is slow to
 * answer delays nothing else. It looks, hands over where this is the only controller, and never tries a failed one again.
 */
import { beginHandover } from "../apply/handover/driver.ts";
import { type HandoverDependencies, isGivenUp, lookAtHandover, planHandover } from "../apply/handover/look/driver.ts";

const LOOK_MS = 30_000;

export interface HandoverWatch extends HandoverDependencies {
  readonly say: (line: string) => void;
}

/**
 * Until the signal, which waits for no answer: a hand-over that is under way then is looked at by the next start. One look
 * begins when the one before, and what came of it, is over.
 */
export async function watchHandover(watch: HandoverWatch, signal: AbortSignal): Promise<void> {
  const { host, say } = watch;
  const ended = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => ended.resolve(), { once: true });
  while (!signal.aborted) {
    const looked = look(watch).catch((thrown: unknown) => {
      if (signal.aborted) return;
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      say(`the hand-over of the CNI could not be looked at: ${why}`);
    });
    await Promise.race([looked, ended.promise]);
    await host.clock.sleep(LOOK_MS, signal);
  }
}

async function look(watch: HandoverWatch): Promise<void> {
  if (watch.state.handover.done() !== undefined || isGivenUp(watch)) return;
  const standing = await lookAtHandover(watch);
  if (standing?.reason !== "Synced") return;
  const planned = await planHandover(watch, standing);
  if (planned.kind !== "planned") return;
  // One at a time and the leader last: that takes somebody who can see them all.
  if ((planned.plan.controlPlane?.members.length ?? 1) > 1) return;
  const begun = beginHandover(watch, planned.plan, { kind: "document" });
  if (begun.kind === "begun") await begun.ended;
}
