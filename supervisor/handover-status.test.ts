import { describe, expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import { memoryState } from "../state/open.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { handoverOf } from "./handover-status.ts";

const document = (mode: "automatic" | "manual" | "disabled" | undefined): Document => ({
  ...makeDocument(),
  network: {
    ...makeDocument().network,
    ...(mode === undefined ? {} : { handover: { mode, stack: "cni", application: { name: "a", namespace: "b" } } }),
  },
});

describe("what status says of the hand-over", () => {
  test("nothing, where there is none", () => {
    const state = memoryState();
    expect(handoverOf(state, document(undefined))).toBeUndefined();
    expect(handoverOf(state, undefined)).toBeUndefined();
  });

  test("until it is done: why not yet, and that each start of k0s applies the bootstrap manifest again", () => {
    const state = memoryState();
    state.handover.set({ status: "False", reason: "WaitingForArgoCD", message: "no Argo CD yet", atMs: 0 });
    const said = handoverOf(state, document("automatic"));
    expect(said).toMatchObject({ status: "False", since: "1970-01-01T00:00:00.000Z", message: "no Argo CD yet" });
    expect(said?.warning).toBe("each start of k0s applies the bootstrap manifest cni over what GitOps made of it");
    expect(handoverOf(state, document("disabled"))?.warning).toBeUndefined();
  });

  test("done: where the files are, also once the document has dropped it", () => {
    const state = memoryState();
    state.handover.finish({ stack: "cni", keptAt: "/kept/cni", atMs: 0 });
    for (const mode of ["automatic", undefined] as const) {
      const said = handoverOf(state, document(mode));
      expect(said).toMatchObject({ status: "True", reason: "HandedOver", stack: "cni", keptAt: "/kept/cni" });
      expect(said?.warning).toBeUndefined();
    }
  });
});
