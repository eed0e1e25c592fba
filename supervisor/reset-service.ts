/** A reset as the API has it: what it would do, and its beginning. The work is another process's (supervisor/reset.ts). */
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { mayLeave } from "../provision/reset/standing.ts";
import { inTheWay, type OperationStep, type Requester } from "../state/model.ts";
import type { State } from "../state/open.ts";
import { nameOf } from "../state/requester.ts";
import { isErasing, removeResetFiles, RESET_UNIT, writeResetIntent } from "./reset-files.ts";
import type { ReadReset, ResetReading } from "./reset-plan.ts";
import { readNodeStanding, readReset } from "./reset-plan.ts";

export interface ResetRequest {
  readonly isWipingDisks: boolean;
  readonly mayDestroyCluster: boolean;
}

export interface ResetService {
  /** Refused as the reset would be: `last-controller`, `quorum`. */
  plan(request: ResetRequest): Promise<Result<ReadReset, AppError>>;
  /** Durable when it returns; `busy` names the operation in the way. */
  begin(
    request: ResetRequest,
    planned: ReadReset,
    requester: Requester,
  ): Promise<Result<{ readonly operation: string }, AppError & { readonly operation?: string }>>;
}

export interface ResetServiceInput extends ResetReading {
  readonly state: State;
  readonly paths: Paths;
  readonly version: string;
}

export function createResetService(input: ResetServiceInput): ResetService {
  const { host, paths, state, version } = input;
  return {
    async plan(request) {
      const erasing = await isErasing(host, paths);
      if (!erasing.ok) return erasing;
      // Half erased it is nobody's controller any more; all that is left is to go on.
      const standing = erasing.value ? ok({ kind: "none" } as const) : await readNodeStanding(input);
      if (!standing.ok) return standing;
      const may = mayLeave(standing.value, request.mayDestroyCluster);
      return may.ok ? readReset(input, standing.value, request.isWipingDisks) : may;
    },
    async begin(request, { plan }, requester) {
      const atMs = host.clock.nowMs();
      const steps = [...plan.leave, ...plan.erase].map(({ id, title }): OperationStep => ({
        id,
        title,
        state: "pending",
      }));
      const begun = state.operations.begin({ kind: "reset", requester, version, steps, atMs });
      if (!begun.ok) {
        const { running } = begun.error;
        const error: AppError = { code: "busy", message: inTheWay(running) };
        return { ok: false, error: { ...error, operation: running.id } };
      }
      const { id } = begun.value;
      const give = async (error: AppError): Promise<Result<never, AppError>> => {
        state.operations.end(id, { phase: "failed", failureReason: error.message }, host.clock.nowMs());
        return fail("not-begun", `the reset could not be begun: ${error.message}`);
      };
      const wasErasing = await isErasing(host, paths);
      const written = await writeResetIntent(host, paths, {
        version: 1,
        ...request,
        requestedAtMs: atMs,
        requestedBy: nameOf(requester),
        operation: id,
        restarts: 0,
      });
      if (!written.ok) return give(written.error);
      const message = `${nameOf(requester)} resets this node${request.isWipingDisks ? ", with its data disks" : ""}`;
      state.events.add({ atMs, kind: "reset-begun", severity: "warning", message });
      // One that failed is still there for systemd.
      await host.systemd.resetFailed(RESET_UNIT);
      const started = await host.systemd.start(RESET_UNIT, { noBlock: true });
      if (started.ok) return ok({ operation: id });
      // Nothing has begun yet, unless an earlier one had: that one goes on at the next boot.
      if (wasErasing.ok && !wasErasing.value) await removeResetFiles(host, paths);
      return give(started.error);
    },
  };
}
