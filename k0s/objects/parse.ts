/** One object of the cluster, as `k0s kubectl get RESOURCE NAME -n NAMESPACE -o json` answers for it. */
import type { ExecResult } from "../../kit/ports.ts";
import { isMap, valueAt } from "../merge.ts";

export interface ObjectRef {
  /** With its group: `charts.helm.k0sproject.io`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Only the API server's own word makes it `absent`: that nobody answered proves nothing. */
export type FoundObject =
  | { readonly is: "there"; readonly object: unknown }
  | { readonly is: "absent" }
  /** The cluster knows no such kind: its CustomResourceDefinition is not installed. */
  | { readonly is: "no-such-kind" }
  | { readonly is: "unknown"; readonly why: string };

export function parseObject(
  { resource, name }: ObjectRef,
  result: Pick<ExecResult, "exitCode" | "stdout" | "stderr" | "timedOut" | "failure">,
): FoundObject {
  if (result.exitCode === 0) return parseFound(name, result.stdout);
  if (result.timedOut) return { is: "unknown", why: "it gave no answer in time" };
  if (result.failure !== undefined) return { is: "unknown", why: `k0s could not be run (${result.failure})` };
  // Above its last words kubectl may complain of other things, such as an aggregated API that does not answer.
  const lines = result.stderr.trim().split("\n");
  if (lines.includes(`Error from server (NotFound): ${resource} "${name}" not found`)) return { is: "absent" };
  const [kind = ""] = resource.split(".");
  if (lines.includes(`error: the server doesn't have a resource type "${kind}"`)) return { is: "no-such-kind" };
  const last = lines
    .at(-1)
    ?.replace(/^error: /i, "")
    .slice(0, WHY_CHARACTERS);
  const ended = result.exitCode === null ? "kubectl was killed" : `kubectl exited with ${result.exitCode}`;
  return { is: "unknown", why: last || ended };
}

/** It is kept, and shown on every console. */
const WHY_CHARACTERS = 300;

function parseFound(name: string, stdout: string): FoundObject {
  let object: unknown;
  try {
    object = JSON.parse(stdout);
  } catch {
    return { is: "unknown", why: "kubectl printed something that is no JSON" };
  }
  // A proxy or a wrapper may have answered: what is said of another thing is not said of this one.
  if (!isMap(object) || valueAt(object, ["metadata", "name"]) !== name) {
    return { is: "unknown", why: "kubectl printed something else than the object it was asked for" };
  }
  return { is: "there", object };
}
