/** What this node is to its cluster, and whether it may leave. */
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { Standing } from "./model.ts";

/** Members of a cluster of this size that have to be there. */
export const quorumOf = (size: number): number => Math.floor(size / 2) + 1;

const CONSENT = "if the cluster may end with this node: --destroy-cluster (destroyCluster)";

/** Whether it may go. With `destroyCluster` whatever becomes of the cluster is agreed to. */
export function mayLeave(standing: Standing, mayDestroyCluster: boolean): Result<void, AppError> {
  if (mayDestroyCluster) return ok(undefined);
  switch (standing.kind) {
    case "none":
    case "worker":
    case "gone":
      return ok(undefined);
    case "last":
      return fail(
        "last-controller",
        "this is the only controller: its cluster, with all that runs in it, ends with it",
        {
          hint: CONSENT,
        },
      );
    case "silent":
      return fail("quorum", `etcd does not answer, so this node can't leave it: ${standing.reason}`, {
        hint: `start the other controllers, or k0s here, and ask again; ${CONSENT}`,
      });
    case "member": {
      const alive = standing.others.filter(({ isReachable }) => isReachable).length;
      const needed = quorumOf(standing.others.length);
      if (alive >= needed) return ok(undefined);
      const away = standing.others.filter(({ isReachable }) => !isReachable).map(({ name }) => name);
      return fail(
        "quorum",
        `without this node etcd would have ${alive} of ${standing.others.length} members and needs ${needed}: ${away.join(", ")} can't be reached`,
        { hint: `start them, and ask again; ${CONSENT}` },
      );
    }
    default:
      return standing satisfies never;
  }
}
