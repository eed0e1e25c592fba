/** The plan in sentences: what a person would notice, and what an undo would take back. */
import type { Addon, Document } from "../config/document.ts";
import type { DocumentDiff } from "./classify.ts";
import { isSame } from "./canonical.ts";

const named = <T extends { readonly name: string }>(list: readonly T[], name: string): T | undefined =>
  list.find((one) => one.name === name);

function describeAddon(addon: Addon, before: Addon | undefined): string | undefined {
  const { name } = addon;
  if (before === undefined) {
    const version = addon.version === undefined ? "" : ` ${addon.version}`;
    return `helm installs ${name}${version} (${addon.chart}) in namespace ${addon.namespace}`;
  }
  if (addon.version !== before.version) {
    return `helm moves ${name} from ${before.version ?? "the newest version"} to ${addon.version ?? "the newest version"}`;
  }
  return isSame(addon, before) ? undefined : `helm upgrades ${name} with its changed settings`;
}

function describeUpgrades(baseline: Document, proposal: Document): readonly string[] {
  const { automatic, schedule } = proposal.upgrades;
  if (isSame(baseline.upgrades, proposal.upgrades)) return [];
  if (automatic === "none") return ["the upgrade timer goes away"];
  return [
    `the upgrade timer runs at "${schedule}"`,
    "automatic upgrades are not in this release: the timer only writes that to the journal",
  ];
}

/** Of a difference that is not refused. */
export function describeConsequences(baseline: Document, proposal: Document, diff: DocumentDiff): readonly string[] {
  const lines: string[] = [];
  if (diff.restarts.length > 0) {
    lines.push(
      "k0scontroller restarts: the Kubernetes API of this node does not answer for about a minute, running pods go on",
    );
  }
  for (const addon of proposal.addons) {
    const line = describeAddon(addon, named(baseline.addons, addon.name));
    if (line !== undefined) lines.push(line);
  }
  for (const { name } of baseline.addons) {
    if (named(proposal.addons, name) === undefined) {
      lines.push(`${name} leaves k0s.yaml; it is uninstalled already, so the cluster loses nothing`);
    }
  }
  for (const stack of proposal.manifests) {
    if (!isSame(stack, named(baseline.manifests, stack.name))) lines.push(`k0s applies the manifests of ${stack.name}`);
  }
  lines.push(...describeUpgrades(baseline, proposal));
  for (const override of diff.overrides) {
    lines.push(`k0s.patch now decides ${override}: what becomes of the running cluster is yours to know`);
  }
  for (const field of diff.fields) {
    if (field.class === "spent") lines.push(`${field.path} has no effect: it was for the first boot`);
    if (field.path.startsWith("manifests[") && field.new === undefined) {
      lines.push(`${field.path} leaves the document; it was handed over, so the node has nothing of it to lose`);
    }
    if (field.path.startsWith("backup.")) lines.push(`${field.path} is recorded; backups are not in this release`);
  }
  lines.push(...describeApi(diff, proposal));
  return lines;
}

export function describeUndo(
  diff: DocumentDiff,
  { fileCount, isConfirmed }: { readonly fileCount: number; readonly isConfirmed: boolean },
): readonly string[] {
  const doesRestart = diff.restarts.length > 0;
  if (!doesRestart && !isConfirmed) return [];
  const when = [doesRestart ? "k0s does not come back" : "", isConfirmed ? "nobody confirms it in time" : ""];
  const files =
    fileCount === 0 ? "everything is as before" : `${fileCount} ${fileCount === 1 ? "file is" : "files are"} put back`;
  const restart = doesRestart ? " and k0scontroller starts with the old ones" : "";
  const lines = [`if ${when.filter((part) => part !== "").join(", or ")}, ${files}${restart}`];
  for (const field of diff.fields) {
    const [, name] = /^addons\[([^\]]+)\]$/.exec(field.path) ?? [];
    if (name === undefined) continue;
    lines.push(
      field.new === undefined
        ? `that would install ${name} again`
        : `that would uninstall ${name} again, with the data it made meanwhile`,
    );
  }
  return lines;
}

function describeApi({ fields, result }: DocumentDiff, { api }: Document): readonly string[] {
  if (result !== "guarded") return [];
  const lines = ["a change of api is taken back by the node itself unless somebody confirms it (--confirm-within)"];
  if (api?.enabled === false) {
    lines.push(
      "once that is confirmed the node has no API any more: only its console is left, and a reset brings it back",
    );
  } else if (fields.some(({ path }) => path.startsWith("api.operatorCA"))) {
    lines.push(
      "a new operator CA is confirmed with a certificate of its own; until then both are obeyed, and then it alone",
    );
  }
  return lines;
}
