/** `k0s kubectl cordon|uncordon|drain`: on the client's side, as kubectl does it, with its texts and exit codes. */
import { callApi, type KubeConfig } from "./api-client.ts";
import { at, listAt, textAt } from "./config.ts";
import { matchesSelector } from "./api-server.ts";
import type { Parsed } from "./flags.ts";
import type { KubectlResult } from "./kubectl-result.ts";
import { findResource, pathOf, type KubeObject, type Resource } from "./resources.ts";
import { durationMs } from "./token.ts";

const RETRY_MS = 5000;

interface Context {
  readonly config: KubeConfig;
  readonly parsed: Parsed;
  readonly resources: readonly Resource[];
}

/** What was printed so far. */
interface Printed {
  out: string;
  err: string;
}

const ended = (printed: Printed, exitCode: number): KubectlResult => ({ ...printed, exitCode });

function resource(context: Context, name: string): Resource {
  const found = findResource(context.resources, name);
  if (found === undefined) throw new Error(`the stand-in has no ${name}`);
  return found;
}

async function setUnschedulable(context: Context, name: string, wanted: boolean, printed: Printed): Promise<boolean> {
  const verb = wanted ? "cordoned" : "uncordoned";
  const path = pathOf(resource(context, "nodes"), undefined, name);
  const found = await callApi(context.config, "GET", path);
  if (found.status !== 200) {
    printed.err += `Error from server (NotFound): nodes "${name}" not found\n`;
    return false;
  }
  if ((at(found.body, "spec", "unschedulable") === true) === wanted) {
    printed.out += `node/${name} already ${verb}\n`;
    return true;
  }
  await callApi(context.config, "PATCH", path, { spec: { unschedulable: wanted ? true : null } });
  printed.out += `node/${name} ${verb}\n`;
  return true;
}

export async function cordon(context: Context, name: string, wanted: boolean): Promise<KubectlResult> {
  const printed: Printed = { out: "", err: "" };
  return ended(printed, (await setUnschedulable(context, name, wanted, printed)) ? 0 : 1);
}

const list = async (context: Context, kind: string, namespace?: string): Promise<readonly KubeObject[]> =>
  listAt(
    (await callApi(context.config, "GET", pathOf(resource(context, kind), namespace))).body,
    "items",
  ) as readonly KubeObject[];

const fullName = (pod: KubeObject): string => `${pod.metadata.namespace ?? "default"}/${pod.metadata.name}`;

const ownersOf = (pod: KubeObject): readonly string[] =>
  listAt(pod, "metadata", "ownerReferences").map((owner) => textAt(owner, "kind"));

const hasEmptyDir = (pod: KubeObject): boolean =>
  listAt(pod, "spec", "volumes").some((volume) => at(volume, "emptyDir") !== undefined);

/** What it will not do without more flags, in kubectl's words; the word that stands twice does so there. */
function fatal(context: Context, pods: readonly KubeObject[]): readonly string[] {
  const names = (which: readonly KubeObject[]): string => which.map(fullName).join(", ");
  const daemons = pods.filter((pod) => ownersOf(pod).includes("DaemonSet"));
  const local = pods.filter((pod) => !daemons.includes(pod) && hasEmptyDir(pod));
  const bare = pods.filter((pod) => ownersOf(pod).length === 0);
  const { parsed } = context;
  return [
    ...(daemons.length === 0 || parsed.isSet("ignore-daemonsets")
      ? []
      : [`cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): ${names(daemons)}`]),
    ...(local.length === 0 || parsed.isSet("delete-emptydir-data")
      ? []
      : [`cannot delete Pods with local storage (use --delete-emptydir-data to override): ${names(local)}`]),
    ...(bare.length === 0 || parsed.isSet("force")
      ? []
      : [`cannot delete cannot delete Pods that declare no controller (use --force to override): ${names(bare)}`]),
  ];
}

/** The eviction API's answer: 429 while a budget allows nothing. */
async function isKept(context: Context, pod: KubeObject): Promise<boolean> {
  const budgets = await list(context, "poddisruptionbudgets", pod.metadata.namespace);
  return budgets.some((budget) => {
    const labels = at(budget, "spec", "selector", "matchLabels") as Readonly<Record<string, string>> | undefined;
    const selector = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
    return at(budget, "status", "disruptionsAllowed") === 0 && matchesSelector(pod, selector.join(","));
  });
}

export async function drain(context: Context, name: string): Promise<KubectlResult> {
  const printed: Printed = { out: "", err: "" };
  if (!(await setUnschedulable(context, name, true, printed))) return ended(printed, 1);
  const pods = (await list(context, "pods")).filter((pod) => textAt(pod, "spec", "nodeName") === name);
  const pending = `There are pending nodes to be drained:\n ${name}\n`;
  const problems = fatal(context, pods);
  if (problems.length > 0) {
    const all = problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`;
    printed.err += `error: unable to drain node "${name}" due to error: ${all}, continuing command...\n${pending}${problems.join("\n")}\n`;
    return ended(printed, 1);
  }
  const daemons = pods.filter((pod) => ownersOf(pod).includes("DaemonSet"));
  if (daemons.length > 0)
    printed.err += `Warning: ignoring DaemonSet-managed Pods: ${daemons.map(fullName).join(", ")}\n`;
  const timeout = context.parsed.text("timeout");
  const limitMs = durationMs(timeout);
  const until = limitMs === 0 ? Number.POSITIVE_INFINITY : Date.now() + limitMs;
  let left = pods.filter((pod) => !daemons.includes(pod));
  while (left.length > 0) {
    const kept: KubeObject[] = [];
    for (const pod of left) {
      printed.out += `evicting pod ${fullName(pod)}\n`;
      const { name: podName, namespace = "default" } = pod.metadata;
      if (await isKept(context, pod)) {
        kept.push(pod);
        printed.err += `error when evicting pods/"${podName}" -n "${namespace}" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.\n`;
        continue;
      }
      await callApi(context.config, "DELETE", pathOf(resource(context, "pods"), namespace, podName));
      printed.out += `pod/${podName} evicted\n`;
    }
    left = kept;
    if (left.length === 0) break;
    if (Date.now() + RETRY_MS >= until) {
      const late = left.map(
        (pod) =>
          `error when evicting pods/"${pod.metadata.name}" -n "${pod.metadata.namespace}": global timeout reached: ${timeout}`,
      );
      printed.err += `${pending}error: ${late.join("\n")}\n`;
      return ended(printed, 1);
    }
    await Bun.sleep(RETRY_MS);
  }
  printed.out += `node/${name} drained\n`;
  return ended(printed, 0);
}
