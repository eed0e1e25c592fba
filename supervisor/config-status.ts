/** Whether the node is what was last applied: looked at when asked, never acted on. */
import type { ConfigStatusAnswer } from "../api/contract.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import { digestFiles } from "../provision/steps.ts";
import { sha256Of } from "../state/documents.ts";
import type { Baseline } from "../state/model.ts";

type Reason = ConfigStatusAnswer["reasons"][number];

export interface ConfigFacts {
  readonly hostname: string;
  readonly k0sVersion?: string;
}

/** `pending`: something else is wished now. `drifted`: the same is wished, but the node differs from it. */
export async function readConfigStatus(
  host: Host,
  paths: Paths,
  baseline: Baseline | undefined,
  facts: ConfigFacts,
): Promise<Pick<ConfigStatusAnswer, "state" | "reasons">> {
  if (baseline === undefined) return { state: "unconfigured", reasons: [] };
  const pending = await pendingReasons(host, paths, baseline, facts);
  const drift = await driftReasons(host, baseline, facts);
  const state = pending.length > 0 ? "pending" : drift.length > 0 ? "drifted" : "in-sync";
  return { state, reasons: [...pending, ...drift] };
}

async function pendingReasons(
  host: Host,
  paths: Paths,
  baseline: Baseline,
  facts: ConfigFacts,
): Promise<readonly Reason[]> {
  const reasons: Reason[] = [];
  const edited = (message: string): Reason => ({ code: "document-edited", message, path: paths.config });
  const text = await host.files.readText(paths.config, { maxBytes: 2 * 1024 * 1024 });
  if (text.ok && sha256Of(text.value) !== baseline.document.sha256) {
    reasons.push(edited(`${paths.config} was edited since it was applied; apply it, or put the old one back`));
  }
  // A node that was bootstrapped from another source never had the file.
  const isSource1 = baseline.document.origin === paths.config || baseline.document.origin === "apply";
  if (!text.ok && text.error.code === "ENOENT" && isSource1) {
    reasons.push(edited(`${paths.config} was deleted since it was applied`));
  }
  if (facts.k0sVersion !== undefined && facts.k0sVersion !== baseline.k0sVersion) {
    const message = `k0s is ${facts.k0sVersion}, the configuration was rendered for ${baseline.k0sVersion}`;
    reasons.push({ code: "k0s-version", message });
  }
  return reasons;
}

async function driftReasons(host: Host, baseline: Baseline, facts: ConfigFacts): Promise<readonly Reason[]> {
  const reasons: Reason[] = [];
  for (const [path, recorded] of Object.entries(baseline.rendered)) {
    const found = await digestFiles(host, [path]);
    if (!found.ok)
      reasons.push({ code: "file-missing", message: `${path} can't be read: it was written by Corium`, path });
    else if (found.value[path] !== recorded) {
      reasons.push({ code: "file-changed", message: `${path} was changed since it was applied`, path });
    }
  }
  if (facts.hostname !== "" && facts.hostname !== baseline.hostname) {
    const message = `the hostname is ${facts.hostname}, it was set to ${baseline.hostname}`;
    reasons.push({ code: "hostname", message });
  }
  return reasons;
}
