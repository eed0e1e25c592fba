/** Nodes of the cluster, cordoned and drained through `k0s kubectl` on a controller; never by force. */
import { type AppError, fail } from "../../kit/app-error.ts";
import type { ExecResult, Host } from "../../kit/ports.ts";
import { ok, type Result } from "../../kit/result.ts";
import { K0S_BINARY } from "../paths.ts";
import { failureOf, type Waiting } from "../service/driver.ts";
import type { ClusterNode, DrainRun, PodName } from "./model.ts";
import { CORDONED_BY, parseBudgets, parseDrain, parseNodes, parsePods, selects } from "./parse.ts";

const ASK_TIMEOUT_MS = 15_000;
/** One run of kubectl's drain: short, so that what it waits for can be said. */
const RUN_SECONDS = 20;
const DRAIN_TIMEOUT_MS = 10 * 60_000;

const kubectl = (host: Host, argv: readonly string[], timeoutMs = ASK_TIMEOUT_MS): Promise<ExecResult> =>
  host.exec({ argv: [K0S_BINARY, "kubectl", ...argv], timeoutMs });

export async function readNodes(host: Host): Promise<Result<readonly ClusterNode[], AppError>> {
  const result = await kubectl(host, ["get", "nodes", "-o", "json"]);
  if (result.exitCode !== 0) return fail("kubernetes", `k0s kubectl get nodes: ${failureOf(result)}`);
  const nodes = parseNodes(result.stdout);
  return nodes === undefined ? fail("kubernetes", "k0s kubectl get nodes printed something else") : ok(nodes);
}

/** Both in one patch, so that a node is never cordoned by us without a note of it. `by`: undefined uncordons. */
export async function setCordon(host: Host, node: string, by: string | undefined): Promise<Result<void, AppError>> {
  const patch = {
    metadata: { annotations: { [CORDONED_BY]: by ?? null } },
    spec: { unschedulable: by === undefined ? null : true },
  };
  const result = await kubectl(host, ["patch", "node", node, "--type", "merge", "-p", JSON.stringify(patch)]);
  return result.exitCode === 0 ? ok(undefined) : fail("kubernetes", `k0s kubectl patch node: ${failureOf(result)}`);
}

/** Evicts what runs there and waits until it is gone, saying what holds it up; ten minutes at most, unless told otherwise. */
export async function drainNode(
  context: Waiting,
  node: string,
  limitMs = DRAIN_TIMEOUT_MS,
): Promise<Result<void, AppError>> {
  const { host, report } = context;
  const until = host.clock.monotonicMs() + limitMs;
  for (;;) {
    const run = await drainOnce(host, node);
    if (run.kind === "drained") return ok(undefined);
    if (run.kind === "gone") {
      return fail("no-node", `the cluster has no node ${node} any more`, {
        hint: "somebody deleted its Node object; a machine that still runs makes it again when its k0s starts",
      });
    }
    if (run.kind === "refused") {
      return fail("drain-refused", `${node} is not drained: ${run.said}`, {
        hint: "nothing would start these again elsewhere, and a drain is never forced: move or delete them yourself",
      });
    }
    const held = await whatHolds(host, run.pods);
    const what = held.length === 0 ? run.said : held.join("; ");
    report(`waiting for the pods of ${node} to go: ${what}`);
    if (host.clock.monotonicMs() >= until) {
      return fail("drain-blocked", `${node} still has pods after ${limitMs / 60_000} min: ${run.said}`, {
        details: held,
        hint: "give the budget's application another replica, or loosen the budget, and drain again; nothing is forced",
      });
    }
    // The fake and a kubectl that fails at once must not spin.
    await host.clock.sleep(1000);
  }
}

async function drainOnce(host: Host, node: string): Promise<DrainRun> {
  // What is in an emptyDir ends with its pod in any case, and DaemonSets ignore a cordon.
  const flags = ["--ignore-daemonsets", "--delete-emptydir-data", `--timeout=${RUN_SECONDS}s`];
  return parseDrain(await kubectl(host, ["drain", node, ...flags], (RUN_SECONDS + 20) * 1000));
}

/** Each pod with the budget that keeps it, in words. */
async function whatHolds(host: Host, pods: readonly PodName[]): Promise<readonly string[]> {
  if (pods.length === 0) return [];
  const listed = await kubectl(host, ["get", "poddisruptionbudgets", "-A", "-o", "json"]);
  const budgets = listed.exitCode === 0 ? parseBudgets(listed.stdout) : [];
  const lines: string[] = [];
  for (const namespace of new Set(pods.map((pod) => pod.namespace))) {
    const names = pods.filter((pod) => pod.namespace === namespace).map(({ name }) => name);
    const found = await kubectl(host, ["get", "pods", "-n", namespace, "-o", "json", "--ignore-not-found", ...names]);
    const known = found.exitCode === 0 ? parsePods(found.stdout) : [];
    for (const name of names) {
      const labels = known.find((pod) => pod.name === name)?.labels;
      const holding = budgets.filter(
        (one) => one.namespace === namespace && labels !== undefined && selects(one.selector, labels),
      );
      const by = holding.map((one) => `budget ${one.namespace}/${one.name} (${one.state})`).join(" and ");
      lines.push(`pod ${namespace}/${name} ${by === "" ? "has not ended yet" : `is kept by ${by}`}`);
    }
  }
  return lines;
}
