/** A drain as an operation: cordoned first, and it stays so, however it ends. */
import { type AppError, formatError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { drainNode, setCordon } from "../k0s/nodes/driver.ts";
import type { ClusterNode } from "../k0s/nodes/model.ts";
import { inTheWay, type Requester } from "../state/model.ts";
import type { State } from "../state/open.ts";
import { nameOf } from "../state/requester.ts";

export interface DrainPorts {
  readonly host: Host;
  readonly state: State;
  /** Of the program. */
  readonly version: string;
}

export type BegunDrain =
  | { readonly kind: "busy"; readonly operation: string; readonly message: string }
  /** `ended`: for those who wait. */
  | { readonly kind: "begun"; readonly operation: string; readonly ended: Promise<void> };

const STEPS = {
  cordon: { id: "drain:cordon", title: "let no new pods come" },
  evict: { id: "drain:evict", title: "evict its pods" },
} as const;

export function beginDrain({ host, state, version }: DrainPorts, node: ClusterNode, requester: Requester): BegunDrain {
  const now = (): number => host.clock.nowMs();
  const steps = Object.values(STEPS).map((step) => ({ ...step, state: "pending" as const }));
  const begun = state.operations.begin({ kind: "drain", requester, version, steps, atMs: now() });
  if (!begun.ok) {
    const { running } = begun.error;
    return { kind: "busy", operation: running.id, message: inTheWay(running) };
  }
  const { id } = begun.value;
  const run = async (
    step: (typeof STEPS)[keyof typeof STEPS],
    work: () => Promise<Result<void, AppError>>,
  ): Promise<Result<void, AppError>> => {
    state.operations.step(id, { ...step, state: "running" }, now());
    const done = await work();
    state.operations.step(id, { ...step, state: done.ok ? "done" : "failed" }, now());
    return done;
  };
  const report = (message: string): void => state.operations.message(id, message, now());
  const work = async (): Promise<void> => {
    // Cordoned by somebody else it stays theirs.
    const cordoned = await run(STEPS.cordon, async () =>
      node.isCordoned ? { ok: true, value: undefined } : setCordon(host, node.name, nameOf(requester)),
    );
    const drained = cordoned.ok ? await run(STEPS.evict, () => drainNode({ host, report }, node.name)) : cordoned;
    const atMs = now();
    if (drained.ok) {
      state.operations.end(id, { phase: "succeeded" }, atMs);
      state.events.add({ atMs, kind: "drained", severity: "info", message: `${node.name} was drained` });
      return;
    }
    const failureReason = formatError(drained.error);
    state.operations.end(id, { phase: "failed", failureReason }, atMs);
    const stays = cordoned.ok && drained.error.code !== "no-node" ? "; it stays cordoned" : "";
    state.events.add({ atMs, kind: "drain-failed", severity: "error", message: `${drained.error.message}${stays}` });
  };
  return { kind: "begun", operation: id, ended: work() };
}
