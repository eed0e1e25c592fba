/** What is wished otherwise than it was last applied, and what making it true would take. Nothing is changed by it. */
import type { ConfigReason, EffectClass } from "../api/contract.ts";
import { type Finding, formatFinding } from "../kit/finding.ts";
import type { SecretField } from "../config/secrets.ts";
import { K0S_CONFIG, K0S_MANIFESTS } from "../k0s/paths.ts";
import type { DocumentDiff } from "./classify.ts";
import { isFirstBoot } from "./input-hash.ts";

/** From what an apply does at once to what none takes. */
const BY_WEIGHT: readonly EffectClass[] = [
  "reboot-free",
  "restarts-k0s",
  "needs-reboot",
  "install-time-only",
  "unsupported",
];

const heaviest = (classes: readonly EffectClass[]): EffectClass =>
  BY_WEIGHT.findLast((each) => classes.includes(each)) ?? "reboot-free";

/** What the gate would make of it. */
function effectOf({ fields, removed, reason, restarts }: DocumentDiff): EffectClass {
  const classes: EffectClass[] = removed.length > 0 || reason !== undefined ? ["unsupported"] : [];
  for (const field of fields) {
    if (field.class === "own-verb") classes.push("unsupported");
    else if (field.class === "immutable" || field.class === "spent") classes.push("install-time-only");
  }
  return heaviest([...classes, ...(restarts.length > 0 ? (["restarts-k0s"] as const) : [])]);
}

/** What a renderer's change of this file takes. */
export function effectOfFile(path: string): EffectClass {
  if (path === K0S_CONFIG) return "restarts-k0s";
  if (path.startsWith(`${K0S_MANIFESTS}/`) || path.includes("/corium-upgrade.")) return "reboot-free";
  return "needs-reboot";
}

/** Source 1 as it is now, when it is not the text that was applied. */
export type SourceOne =
  | { readonly is: "deleted" }
  | { readonly is: "unreadable"; readonly why: string }
  | { readonly is: "invalid"; readonly first: Finding | undefined }
  | { readonly is: "edited"; readonly diff: DocumentDiff };

/** Undefined where it says the same: comments, order and spelling are nobody's wish. */
export function documentEdited(path: string, source: SourceOne): ConfigReason | undefined {
  const reason = (message: string, effect: EffectClass): ConfigReason => ({
    code: "document-edited",
    message,
    path,
    class: effect,
  });
  switch (source.is) {
    case "deleted":
      return reason(
        `${path} was deleted since it was applied; the next apply that changes something writes it again`,
        "reboot-free",
      );
    case "unreadable":
      return reason(`${path} was changed since it was applied, and can't be read: ${source.why}`, "unsupported");
    case "invalid": {
      const problem = source.first === undefined ? "" : `: ${formatFinding(source.first).split("\n")[0] ?? ""}`;
      return reason(`${path} was edited since it was applied and is not valid${problem}`, "unsupported");
    }
    case "edited": {
      const { diff } = source;
      const names = [...new Set([...diff.fields, ...diff.removed].map((each) => each.path))].toSorted();
      if (names.length === 0 && diff.reason === undefined) return undefined;
      const shown =
        names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", ");
      const message = `${path} was edited since it was applied (${shown}); \`cctl apply\` it, or put the old one back`;
      return reason(message, effectOf(diff));
    }
    default:
      return source satisfies never;
  }
}

/** Fields whose secret is in a file of this node, which may have another content by now. */
export const watchedSecrets = (
  fields: readonly SecretField[],
): readonly { readonly path: string; readonly file: string }[] =>
  fields.flatMap(({ path, source }) =>
    source?.file === undefined || isFirstBoot(path) ? [] : [{ path, file: source.file }],
  );

/** No apply takes it: a VRRP password is changed on all controllers at once, the keys of overlays are of the first boot. */
export function secretChanged(field: string, file: string): ConfigReason {
  const isOverlay = field.startsWith("wireguard");
  const what = isOverlay ? "the overlay keeps the key it was made with" : "k0s keeps the password it was given";
  return {
    code: "secret-changed",
    message: `${field}: ${file} holds another secret than the node was made with; ${what}`,
    path: file,
    class: isOverlay ? "install-time-only" : "unsupported",
  };
}

export const addressChanged = (addresses: readonly string[]): ConfigReason => ({
  code: "address-changed",
  message: `this node entered service with ${addresses.join(", ")} and does not have it now: give it back to the machine, or reset the node`,
  class: "unsupported",
});

export const k0sChanged = (now: string, recorded: string): ConfigReason => ({
  code: "k0s-version",
  message: `k0s is ${now}, the configuration was rendered for ${recorded}`,
  class: "restarts-k0s",
});

/** What was applied by another release, whose fields this one does not know: nothing can be rendered of it. */
export const documentNotTaken = (first: Finding): ConfigReason => ({
  code: "renderer-changed",
  message: `this release does not take the document that the node runs (${formatFinding(first).split("\n")[0] ?? ""}); k0s goes on with the files as they are; start the release that took it, and apply one there that is valid for both`,
  class: "unsupported",
});

/** Wished, because GitOps has shown that it has the CNI, but k0s still reads the stack. */
export const handoverWaits = (message: string): ConfigReason => ({ code: "handover", message, class: "restarts-k0s" });

/** `paths`: what this release would write otherwise. */
export function rendererChanged(now: number, recorded: number, paths: readonly string[]): ConfigReason {
  const what = paths.length === 0 ? "and writes the same" : `and writes ${paths.toSorted().join(", ")} otherwise`;
  return {
    code: "renderer-changed",
    message: `this release renders in another way (${now}, was ${recorded}) ${what}`,
    class: heaviest(paths.map(effectOfFile)),
  };
}
