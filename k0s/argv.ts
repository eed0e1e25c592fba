import type { Document, Taint } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import { overlayAddress } from "./addresses.ts";
import { K0S_CONFIG, K0S_JOIN_TOKEN, type K0sUnit } from "./paths.ts";

const writeTaint = (taint: Taint): string =>
  `${taint.key}${taint.value === undefined || taint.value === "" ? "" : `=${taint.value}`}:${taint.effect}`;

/** Bytewise by key, as k0s's own map would not be. */
function writeLabels(labels: Readonly<Record<string, string>>): string {
  const byKey = Object.entries(labels).toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return byKey.map(([key, value]) => `${key}=${value}`).join(",");
}

function roleArgv(document: Document): readonly string[] {
  switch (document.role) {
    case "single":
      return ["install", "controller", "--config", K0S_CONFIG, "--single"];
    case "controller":
      return ["install", "controller", "--config", K0S_CONFIG];
    case "controller+worker":
      return ["install", "controller", "--config", K0S_CONFIG, "--enable-worker", "--no-taints"];
    case "worker":
      return ["install", "worker"];
    case undefined:
      return [];
    default:
      return document.role satisfies never;
  }
}

export const unitOf = (document: Document): K0sUnit => (document.role === "worker" ? "k0sworker" : "k0scontroller");

export const joins = (document: Document): boolean =>
  document.join?.token !== undefined || document.join?.tokenFrom !== undefined;

/** The arguments of `k0s`, from `install` on; null while the node has no role. Never a secret: the token is a file. */
export function installArgv(document: Document, addresses: RecordedAddresses): string[] | null {
  if (document.role === undefined) return null;
  const argv = [...roleArgv(document)];
  if (joins(document)) argv.push("--token-file", K0S_JOIN_TOKEN);
  const nodeIp = overlayAddress(document) ?? addresses.nodeIp;
  if (nodeIp !== undefined) argv.push("--kubelet-extra-args", `--node-ip=${nodeIp}`);
  const { labels, taints } = document.node;
  if (Object.keys(labels).length > 0) argv.push("--labels", writeLabels(labels));
  if (taints.length > 0) argv.push("--taints", taints.map(writeTaint).join(","));
  return argv;
}
