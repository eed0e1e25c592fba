import { describe, expect, test } from "bun:test";
import { parseBudgets, parseDrain, parseNodes, parsePods, selects } from "./parse.ts";

const failed = (...lines: readonly string[]): ReturnType<typeof parseDrain> =>
  parseDrain({ exitCode: 1, stderr: `${lines.join("\n")}\n` });

/** As kubectl 1.3x prints it, with the word twice where it does. */
const BARE = "cannot delete cannot delete Pods that declare no controller (use --force to override): default/hr-app";

describe("kubectl drain", () => {
  test("that is through", () => {
    expect(parseDrain({ exitCode: 0, stderr: "Warning: ignoring DaemonSet-managed Pods: kube-system/x\n" })).toEqual({
      kind: "drained",
    });
  });

  test("a budget keeps pods: each is named once, in whatever of its two sentences", () => {
    const run = failed(
      "Warning: ignoring DaemonSet-managed Pods: kube-system/kube-proxy-8l9k4",
      `error when evicting pods/"web-1" -n "shop" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.`,
      `error when evicting pods/"web-1" -n "shop" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.`,
      "There are pending nodes to be drained:",
      " n1",
      `error: error when evicting pods/"web-1" -n "shop": global timeout reached: 20s`,
    );
    expect(run).toEqual({
      kind: "blocked",
      pods: [{ namespace: "shop", name: "web-1" }],
      said: `error when evicting pods/"web-1" -n "shop": global timeout reached: 20s`,
    });
  });

  test("a pod that takes its time to end", () => {
    expect(
      failed(`error: error when waiting for pod "db-0" in namespace "shop" to terminate: global timeout reached: 20s`),
    ).toMatchObject({ kind: "blocked", pods: [{ namespace: "shop", name: "db-0" }] });
  });

  test("what only force would overcome is refused at once, with the pods and without the advice to force it", () => {
    expect(
      failed(
        `error: unable to drain node "n1" due to error: ${BARE}, continuing command...`,
        "There are pending nodes to be drained:",
        " n1",
        BARE,
      ),
    ).toEqual({ kind: "refused", said: "Pods that declare no controller: default/hr-app" });
  });

  test("a node that is gone was waited for as if its pods were there still", () => {
    expect(failed(`Error from server (NotFound): nodes "n1" not found`)).toEqual({ kind: "gone" });
  });

  test("an API that is gone names no pods", () => {
    expect(failed("The connection to the server was refused")).toEqual({
      kind: "blocked",
      pods: [],
      said: "The connection to the server was refused",
    });
  });
});

test("nodes: ready, cordoned, and by whom", () => {
  const node = (name: string, spec: object, annotations?: object): object => ({
    kind: "Node",
    metadata: { name, ...(annotations === undefined ? {} : { annotations }) },
    spec,
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });
  const stdout = JSON.stringify({
    items: [
      node("n1", {}),
      node("n2", { unschedulable: true }),
      node("n3", { unschedulable: true }, { "corium/cordoned-by": "operator ann" }),
    ],
  });
  expect(parseNodes(stdout)).toEqual([
    { name: "n1", isReady: true, isCordoned: false, isOurs: false },
    { name: "n2", isReady: true, isCordoned: true, isOurs: false },
    { name: "n3", isReady: true, isCordoned: true, isOurs: true },
  ]);
  expect(parseNodes("nonsense")).toBeUndefined();
});

test("only budgets that let nothing go now hold anything up", () => {
  const budget = (name: string, disruptionsAllowed: number): object => ({
    metadata: { namespace: "shop", name },
    spec: { selector: { matchLabels: { app: name } } },
    status: { disruptionsAllowed, currentHealthy: 2, desiredHealthy: 2, expectedPods: 3 },
  });
  expect(parseBudgets(JSON.stringify({ items: [budget("web", 0), budget("db", 1)] }))).toEqual([
    {
      namespace: "shop",
      name: "web",
      selector: { matchLabels: { app: "web" } },
      state: "2 of 3 healthy, 2 wanted",
    },
  ]);
});

test("one pod is one object, several are a list", () => {
  const pod = { kind: "Pod", metadata: { namespace: "shop", name: "web-1", labels: { app: "web" } } };
  const parsed = [{ namespace: "shop", name: "web-1", labels: { app: "web" } }];
  expect(parsePods(JSON.stringify(pod))).toEqual(parsed);
  expect(parsePods(JSON.stringify({ kind: "List", items: [pod] }))).toEqual(parsed);
  expect(parsePods("")).toEqual([]);
});

describe("a budget's selector", () => {
  const labels = { app: "web", tier: "front" };
  const expression = (key: string, operator: string, ...values: string[]): unknown => ({
    matchExpressions: [{ key, operator, ...(values.length === 0 ? {} : { values }) }],
  });
  test.each([
    [{}, true],
    [undefined, false],
    [null, false],
    [{ matchLabels: { app: "web" } }, true],
    [{ matchLabels: { app: "web", tier: "back" } }, false],
    [expression("tier", "In", "front", "back"), true],
    [expression("tier", "In", "back"), false],
    [expression("tier", "NotIn", "back"), true],
    [expression("zone", "NotIn", "a"), true],
    [expression("tier", "Exists"), true],
    [expression("zone", "Exists"), false],
    [expression("zone", "DoesNotExist"), true],
    [expression("tier", "Like", "f"), false],
  ])("%j: %p", (selector, expected) => {
    expect(selects(selector, labels)).toBe(expected);
  });
});
