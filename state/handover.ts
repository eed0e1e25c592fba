import type { HandoverCondition, HandoverDone } from "./model.ts";
import type { Meta } from "./meta.ts";

/** Who has the CNI: how it stands, and the hand-over once it is done. Both are forgotten by a reset only. */
export interface HandoverRepository {
  condition(): HandoverCondition | undefined;
  /** `atMs` stays as it is while status, reason and message do. */
  set(condition: HandoverCondition): void;
  done(): HandoverDone | undefined;
  /** The condition becomes True with it. */
  finish(done: HandoverDone): void;
}

/** Rows of the table `meta`: one value each, and an older program has no use for them. */
export function handoverIn(meta: Pick<Meta, "get" | "set">): HandoverRepository {
  const read = <T>(key: "handover" | "handed-over"): T | undefined => {
    const text = meta.get(key);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  };
  const condition = (): HandoverCondition | undefined => read("handover");
  const set = (next: HandoverCondition): void => {
    const now = condition();
    const isSame = now?.status === next.status && now.reason === next.reason && now.message === next.message;
    if (!isSame) meta.set("handover", JSON.stringify(next));
  };
  return {
    condition,
    set,
    done: () => read("handed-over"),
    finish(done) {
      const { stack, keptAt, atMs } = done;
      meta.set("handed-over", JSON.stringify(done));
      const message = `k0s no longer reads ${stack}; its files are kept in ${keptAt}`;
      set({ status: "True", reason: "HandedOver", message, atMs });
    },
  };
}
