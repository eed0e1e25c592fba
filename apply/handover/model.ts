/** Letting go of the bootstrap CNI (docs/adr/0406-handover.md): who decides it, and how it stands. Pure. */
import type { Document } from "../../config/document.ts";
import { isMap, valueAt } from "../../k0s/merge.ts";
import type { FoundObject, ObjectRef } from "../../k0s/objects/parse.ts";
import { K0S_DATA, K0S_MANIFESTS } from "../../k0s/paths.ts";
import type { HandoverCondition } from "../../state/model.ts";

export type Standing = Pick<HandoverCondition, "status" | "reason" | "message">;

/** What a document with `network.handover` wants. */
export type Wish =
  | { readonly mode: "disabled" }
  | { readonly mode: "manual"; readonly stack: string }
  | { readonly mode: "automatic"; readonly stack: string; readonly application: ObjectRef };

export function wishOf({ network: { handover } }: Document): Wish | undefined {
  if (handover === undefined) return undefined;
  const { mode, stack, application } = handover;
  // A document that lacks either was refused.
  if (mode === "disabled" || stack === undefined) return { mode: "disabled" };
  if (mode === "manual" || application === undefined) return { mode: "manual", stack };
  return { mode, stack, application: { resource: "applications.argoproj.io", ...application } };
}

/** What k0s reads. */
export const stackFolder = (stack: string): string => `${K0S_MANIFESTS}/${stack}`;
/** On the same filesystem, so that one rename moves it: it is never in both places, nor in none. */
export const keptFolder = (stack: string): string => `${K0S_DATA}/handed-over/${stack}`;

export const modeStanding = (mode: "disabled" | "manual"): Standing =>
  mode === "disabled"
    ? { status: "False", reason: "Disabled", message: "network.handover.mode is disabled" }
    : {
        status: "False",
        reason: "Manual",
        message: "network.handover.mode is manual: `cctl handover NODE` hands the CNI over",
      };

const textAt = (value: unknown, ...path: readonly string[]): string => {
  const found = valueAt(value, path);
  return typeof found === "string" ? found.slice(0, WORD_CHARACTERS) : "";
};
/** One word, by what Argo CD writes there. */
const WORD_CHARACTERS = 60;

/** That there is no Argo CD yet, or no Application, is where every cluster begins. */
export function judgeApplication({ namespace, name }: ObjectRef, found: FoundObject): Standing {
  const called = `Application ${namespace}/${name}`;
  const not = (reason: Standing["reason"], message: string): Standing => ({ status: "False", reason, message });
  switch (found.is) {
    case "no-such-kind":
      return not("WaitingForArgoCD", "Argo CD is not installed in this cluster yet");
    case "absent":
      return not("WaitingForArgoCD", `there is no ${called} yet`);
    case "unknown":
      return not("NoAnswer", `the cluster does not say how ${called} stands: ${found.why}`);
    case "there":
      break;
    default:
      return found satisfies never;
  }
  const { object } = found;
  if (valueAt(object, ["metadata", "deletionTimestamp"]) !== undefined) {
    return not("NotSynced", `${called} is being deleted`);
  }
  const sync = textAt(object, "status", "sync", "status") || "not looked at by Argo CD yet";
  const health = textAt(object, "status", "health", "status") || "unknown";
  if (sync !== "Synced") {
    if (isSyncedByItself(object) || isSyncing(object)) return not("NotSynced", `${called} is ${sync}`);
    const cure = `set its spec.syncPolicy.automated, or sync it by hand (argocd app sync ${name})`;
    return not("WillNeverSync", `${called} is ${sync} and has no automated sync, so it stays so: ${cure}`);
  }
  if (health !== "Healthy") return not("NotHealthy", `${called} is Synced, but its health is ${health}`);
  return { status: "True", reason: "Synced", message: `${called} is Synced and Healthy` };
}

/** `automated: {}` is on; newer releases can switch it off by `enabled: false`. */
function isSyncedByItself(application: unknown): boolean {
  const automated = valueAt(application, ["spec", "syncPolicy", "automated"]);
  return isMap(automated) && automated["enabled"] !== false;
}

/** Somebody does it by hand right now. */
const isSyncing = (application: unknown): boolean =>
  isMap(valueAt(application, ["operation"])) || textAt(application, "status", "operationState", "phase") === "Running";
