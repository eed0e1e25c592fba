import { describe, expect, test } from "bun:test";
import { parseLeader } from "./parse.ts";

const lease = (name: string, holderIdentity?: string): object => ({ metadata: { name }, spec: { holderIdentity } });
const leases = (...items: readonly object[]): string => JSON.stringify({ kind: "List", items });

describe("k0s's leader", () => {
  const controllers = [lease("k0s-ctrl-n1", "run1"), lease("k0s-ctrl-n2", "run2"), lease("n1", "n1")];

  test("is the controller whose own lease has the holder of the leader's", () => {
    expect(parseLeader(leases(...controllers, lease("k0s-endpoint-reconciler", "run2")))).toBe("n2");
  });

  test.each([
    ["nobody holds it", leases(...controllers, lease("k0s-endpoint-reconciler", ""))],
    ["it was never there", leases(...controllers)],
    ["its holder's run is over", leases(...controllers, lease("k0s-endpoint-reconciler", "run9"))],
    ["a kubelet's lease is no controller's", leases(lease("n1", "n1"), lease("k0s-endpoint-reconciler", "n1"))],
    ["no list", "null"],
    ["no JSON", "The connection was refused"],
  ])("is not known where %s", (_, stdout) => {
    expect(parseLeader(stdout)).toBeUndefined();
  });
});
