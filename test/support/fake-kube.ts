/** `k0s kubectl` on a controller with a few nodes, pods and budgets: what cordon and drain need, in kubectl's words. */
import type { ExecResult } from "../../kit/ports.ts";
import type { FakeProgram } from "./fake-host.ts";

export interface FakePod {
  readonly namespace: string;
  readonly name: string;
  node: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Nothing would start it again. */
  readonly isBare?: true;
}

export interface FakeBudget {
  readonly namespace: string;
  readonly name: string;
  readonly selector: unknown;
  allowed: number;
}

interface FakeNode {
  isReady: boolean;
  unschedulable?: boolean;
  annotations: Record<string, string>;
}

export interface FakeKube {
  readonly nodes: Map<string, FakeNode>;
  pods: FakePod[];
  budgets: FakeBudget[];
  /** Every answer is this, when set. */
  failure?: Partial<ExecResult>;
  /** Runs of drain until now. */
  drains: number;
  onDrain?: () => void;
  readonly program: FakeProgram;
}

export function fakeKube(...names: readonly string[]): FakeKube {
  const kube: FakeKube = {
    nodes: new Map(names.map((name) => [name, { isReady: true, annotations: {} }])),
    pods: [],
    budgets: [],
    drains: 0,
    program: ({ argv }) => {
      if (kube.failure !== undefined) return kube.failure;
      const [, command, verb = "", ...words] = argv;
      if (command !== "kubectl") return { exitCode: 1, stderr: `Error: unknown command "${command}" for "k0s"\n` };
      if (verb === "drain") return drain(kube, words[0] ?? "");
      if (verb === "patch") return patch(kube, words[1] ?? "", words.at(-1) ?? "{}");
      if (verb === "get") return get(kube, words);
      return { exitCode: 1, stderr: `error: unknown command "${verb}"\n` };
    },
  };
  return kube;
}

const list = (items: readonly object[]): string => JSON.stringify({ kind: "List", items });

function get(kube: FakeKube, words: readonly string[]): string | Partial<ExecResult> {
  if (words[0] === "nodes") {
    return list(
      [...kube.nodes].map(([name, { isReady, unschedulable, annotations }]) => ({
        kind: "Node",
        metadata: { name, annotations },
        spec: unschedulable === true ? { unschedulable } : {},
        status: { conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
      })),
    );
  }
  if (words[0] === "poddisruptionbudgets") {
    return list(
      kube.budgets.map(({ namespace, name, selector, allowed }) => ({
        kind: "PodDisruptionBudget",
        metadata: { namespace, name },
        spec: { selector },
        status: { disruptionsAllowed: allowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
      })),
    );
  }
  const namespace = words[words.indexOf("-n") + 1];
  const items = kube.pods
    .filter((pod) => pod.namespace === namespace && words.includes(pod.name))
    .map(({ name, labels }) => ({ kind: "Pod", metadata: { namespace, name, labels } }));
  // One name, one object.
  return items.length === 1 ? JSON.stringify(items[0]) : list(items);
}

function patch(kube: FakeKube, name: string, text: string): string | Partial<ExecResult> {
  const node = kube.nodes.get(name);
  if (node === undefined) return { exitCode: 1, stderr: `Error from server (NotFound): nodes "${name}" not found\n` };
  const { metadata, spec } = JSON.parse(text) as {
    readonly metadata: { readonly annotations: Readonly<Record<string, string | null>> };
    readonly spec: { readonly unschedulable: boolean | null };
  };
  for (const [key, value] of Object.entries(metadata.annotations)) {
    if (value === null) delete node.annotations[key];
    else node.annotations[key] = value;
  }
  node.unschedulable = spec.unschedulable === true;
  return `node/${name} patched\n`;
}

function drain(kube: FakeKube, name: string): string | Partial<ExecResult> {
  kube.drains += 1;
  kube.onDrain?.();
  if (!kube.nodes.has(name))
    return { exitCode: 1, stderr: `Error from server (NotFound): nodes "${name}" not found\n` };
  const here = kube.pods.filter((pod) => pod.node === name);
  const bare = here.filter(({ isBare }) => isBare).map((pod) => `${pod.namespace}/${pod.name}`);
  if (bare.length > 0) {
    const said = `cannot delete cannot delete Pods that declare no controller (use --force to override): ${bare.join(", ")}`;
    return {
      exitCode: 1,
      stderr: `error: unable to drain node "${name}" due to error: ${said}, continuing command...\nThere are pending nodes to be drained:\n ${name}\n${said}\n`,
    };
  }
  const kept = here.filter((pod) =>
    kube.budgets.some((budget) => {
      const { matchLabels = {} } = budget.selector as { readonly matchLabels?: Readonly<Record<string, string>> };
      const fits = Object.entries(matchLabels).every(([key, value]) => pod.labels?.[key] === value);
      return budget.namespace === pod.namespace && budget.allowed === 0 && fits;
    }),
  );
  for (const pod of here) if (!kept.includes(pod)) pod.node = "elsewhere";
  if (kept.length === 0) return `node/${name} already cordoned\nnode/${name} drained\n`;
  const lines = kept.flatMap((pod) => [
    `error when evicting pods/"${pod.name}" -n "${pod.namespace}" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.`,
    `error when evicting pods/"${pod.name}" -n "${pod.namespace}": global timeout reached: 20s`,
  ]);
  return { exitCode: 1, stderr: `${lines.join("\n")}\n` };
}
