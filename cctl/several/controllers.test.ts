import { describe, expect, test } from "bun:test";
import type { NodeAnswer } from "../../api/contract.ts";
import { type Controller, checkMembers, checkRoles, leaderLast, leaderOf } from "./controllers.ts";

const MEMBERS = ["n1", "n2", "n3"];
const controller = (hostname: string, more: Partial<Controller["controlPlane"] & object> = {}): Controller => ({
  label: hostname,
  hostname,
  controlPlane: { members: MEMBERS, self: hostname, leader: "n2", ...more },
});
const silent = (hostname: string): Controller => ({ label: hostname, hostname });
const reason = (nodes: readonly Controller[]): string | undefined => {
  const checked = checkMembers(nodes);
  return checked.ok ? undefined : checked.error.code;
};

describe("the nodes that are named", () => {
  test("are all controllers of one etcd", () => {
    expect(reason(MEMBERS.map((name) => controller(name)))).toBeUndefined();
  });

  test("may be some that can't be asked, as long as one can", () => {
    expect(reason([controller("n1"), silent("n2"), silent("n3")])).toBeUndefined();
    expect(reason(MEMBERS.map(silent))).toBe("no-answer");
  });

  test("are named by what etcd calls them, where a patch gives other names (k0s issue 3985)", () => {
    const members = ["a", "b"];
    const own = [controller("n1", { members, self: "a" }), controller("n2", { members, self: "b" })];
    expect(reason(own)).toBeUndefined();
    expect(reason([controller("n1", { members, self: "a" }), silent("n2")])).toBe("other-cluster");
  });

  test("lack one, which is named", () => {
    const checked = checkMembers([controller("n1"), controller("n3")]);
    expect(checked).toMatchObject({
      error: { code: "not-all", message: expect.stringContaining("n2 of this cluster's") },
    });
  });

  test("hold one twice, under two names: it was written once, found busy, and all of it was taken back", () => {
    const twice = [...MEMBERS.map((name) => controller(name)), { ...controller("n2"), label: "192.0.2.2" }];
    const checked = checkMembers(twice);
    expect(checked).toMatchObject({
      error: { code: "usage", message: "n2 and 192.0.2.2 are the same controller, n2" },
    });
  });

  test("are of two clusters, or hold one that is none of them", () => {
    expect(reason([controller("n1"), controller("m1", { members: ["m1"], self: "m1" })])).toBe("other-cluster");
    expect(reason([...MEMBERS.map((name) => controller(name)), silent("n4")])).toBe("other-cluster");
  });
});

describe("roles", () => {
  const node = (role: NodeAnswer["role"], cluster = "shop"): Parameters<typeof checkRoles>[0][number] => ({
    label: "x",
    node: { hostname: "x", cluster, ...(role === undefined ? {} : { role }) },
  });
  test.each([
    ["a worker", [node("controller"), node("worker")], undefined, "not-a-controller"],
    ["a single node", [node("single"), node("controller")], undefined, "not-a-controller"],
    ["a node that is nothing yet", [node("controller"), node(undefined)], undefined, "not-a-controller"],
    ["another cluster", [node("controller"), node("controller", "ship")], undefined, "other-cluster"],
    ["a file of another cluster", [node("controller"), node("controller")], "ship", "other-cluster"],
    ["nothing wrong", [node("controller"), node("controller+worker")], "shop", undefined],
    ["a file of add-ons alone", [node("controller"), node("controller")], undefined, undefined],
  ] as const)("%s", (_, nodes, cluster, code) => {
    const checked = checkRoles(nodes, cluster);
    expect(checked.ok ? undefined : checked.error.code).toBe(code);
  });
});

describe("the order", () => {
  test("is as they were named, the leader last; Kubernetes knows it in lower case", () => {
    const nodes = ["n1", "N2", "n3"].map((name) => controller(name));
    expect(leaderLast(nodes, leaderOf(nodes)).map(({ hostname }) => hostname)).toEqual(["n1", "n3", "N2"]);
  });

  test("is as they were named between two elections", () => {
    const nodes = MEMBERS.map(silent);
    expect(leaderOf(nodes)).toBeUndefined();
    expect(leaderLast(nodes, undefined)).toEqual(nodes);
  });
});
