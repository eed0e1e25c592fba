/** What the daemon does for the arrays beside answering: watches them, and goes on with a replacement that was cut off. */
import type { AppError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import type { ReplacePlan, ReplaceRequest } from "../provision/replace-plan.ts";
import type { Requester } from "../state/model.ts";
import { watchArrays } from "./array-watch.ts";
import type { Begun, DiskReplacing } from "./disk-replace.ts";
import { beginReplace, planReplace, resumeReplace } from "./disk-replace.ts";

export interface ArrayDuty {
  readonly disks: {
    plan(request: ReplaceRequest): Promise<Result<ReplacePlan, AppError>>;
    begin(request: ReplaceRequest, plan: ReplacePlan, requester: Requester): Begun;
  };
  /** Until the signal. */
  watch(signal: AbortSignal): Promise<void>;
}

export function arrayDuty(replacing: DiskReplacing, runDir: string): ArrayDuty {
  const { host, state, identities, say } = replacing;
  return {
    disks: {
      plan: (request) => planReplace(replacing, request),
      begin: (request, plan, requester) => beginReplace(replacing, request, plan, requester),
    },
    async watch(signal) {
      void resumeReplace(replacing).catch((thrown: unknown) => say(`disk replacement: ${String(thrown)}`));
      await watchArrays({ host, state, memoryPath: `${runDir}/arrays.json`, identities, signal, say });
    },
  };
}
