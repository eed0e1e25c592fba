/** Whether the nodes that were named are the controllers of one cluster, all of them, and in which order they restart. */
import type { ControlPlaneAnswer, NodeAnswer } from "../../api/contract.ts";
import { type AppError, fail } from "../../kit/app-error.ts";
import { type Result, ok } from "../../kit/result.ts";

export interface Controller {
  /** As it is shown. */
  readonly label: string;
  readonly hostname: string;
  /** Absent where its k0s does not answer. */
  readonly controlPlane?: ControlPlaneAnswer;
}

/** Before anything is asked of them. `cluster`: of the file, when it says one. */
export function checkRoles(
  nodes: readonly { readonly label: string; readonly node: Pick<NodeAnswer, "role" | "cluster" | "hostname"> }[],
  cluster: string | undefined,
): Result<void, AppError> {
  const [first] = nodes;
  for (const { label, node } of nodes) {
    if (node.role !== "controller" && node.role !== "controller+worker") {
      const is = node.role === undefined ? "not in service yet" : `a ${node.role}`;
      return fail("not-a-controller", `${label} is ${is}; only controllers of one cluster are applied to together`);
    }
    if (node.cluster !== first?.node.cluster) {
      return fail(
        "other-cluster",
        `${label} is of cluster ${node.cluster ?? "?"}, ${first?.label} of ${first?.node.cluster ?? "?"}`,
      );
    }
  }
  if (cluster !== undefined && first !== undefined && cluster !== first.node.cluster) {
    return fail("other-cluster", `the file is of cluster ${cluster}, the nodes are of ${first.node.cluster ?? "?"}`);
  }
  return ok(undefined);
}

/** What one controller is not given would be undone, or come back, as soon as it leads. */
export function checkMembers(nodes: readonly Controller[]): Result<void, AppError> {
  // Who can't say it is known by the host name, which is what etcd calls it unless a patch has it otherwise.
  const named = nodes.map(({ hostname, controlPlane }) => controlPlane?.self ?? hostname);
  const known = nodes.flatMap(({ controlPlane }) => (controlPlane === undefined ? [] : [controlPlane.members]));
  const [members] = known;
  if (members === undefined) {
    return fail("no-answer", "none of the nodes can say who the controllers are: k0s does not answer", {
      hint: "cctl status and cctl logs say why",
    });
  }
  if (known.some((other) => other.join() !== members.join())) {
    return fail("other-cluster", "the nodes do not name the same controllers: they are of different clusters", {
      details: nodes.map(({ label, controlPlane }) => `${label}: ${controlPlane?.members.join(", ") ?? "no answer"}`),
    });
  }
  const twin = named.findIndex((name, at) => named.indexOf(name) < at);
  const first = nodes[named.indexOf(named[twin] ?? "")];
  if (twin !== -1 && first !== undefined) {
    return fail(
      "usage",
      `${first.label} and ${nodes[twin]?.label ?? "?"} are the same controller, ${named[twin] ?? "?"}`,
      {
        hint: "name each of them once",
      },
    );
  }
  const strange = nodes.find((_, at) => !members.includes(named[at] ?? ""));
  if (strange !== undefined) {
    return fail("other-cluster", `${strange.label} is none of the controllers ${members.join(", ")}`);
  }
  const missing = members.filter((member) => !named.includes(member));
  if (missing.length > 0) {
    return fail(
      "not-all",
      `${missing.join(", ")} of this cluster's controllers ${missing.length === 1 ? "is" : "are"} not named`,
      {
        hint: "name all of them: what one is not given is undone when it leads; one that is gone for good must leave etcd first",
      },
    );
  }
  return ok(undefined);
}

export const leaderOf = (nodes: readonly Controller[]): string | undefined =>
  nodes.find(({ controlPlane }) => controlPlane?.leader !== undefined)?.controlPlane?.leader;

/** Kubernetes has names in lower case only. */
export const isLeader = (hostname: string, leader: string | undefined): boolean => hostname.toLowerCase() === leader;

/** As they were named, the leader last: whoever leads after it has the new content already. */
export function leaderLast<T extends { readonly hostname: string }>(
  nodes: readonly T[],
  leader: string | undefined,
): readonly T[] {
  return [
    ...nodes.filter(({ hostname }) => !isLeader(hostname, leader)),
    ...nodes.filter(({ hostname }) => isLeader(hostname, leader)),
  ];
}
