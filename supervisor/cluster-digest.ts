/** What a status says of the cluster-wide part of the document: the same on every controller that says the same. */
import { clusterDigest } from "../apply/cluster-content.ts";
import type { Document } from "../config/document.ts";
import type { Host } from "../kit/ports.ts";
import { K0S_DATA } from "../k0s/paths.ts";
import { sha256Of } from "../kit/sha256.ts";

/** Every controller of a cluster has it, and nobody who may only look. */
export const CLUSTER_KEY = `${K0S_DATA}/pki/ca.key`;

/** Absent on workers, and until k0s has made or fetched its CA. */
export async function readClusterDigest(
  host: Host,
  document: Document | undefined,
  handedOver?: string,
): Promise<string | undefined> {
  if (document?.role === undefined || document.role === "worker") return undefined;
  const key = await host.files.readText(CLUSTER_KEY, { maxBytes: 64 * 1024 });
  if (!key.ok) return undefined;
  return clusterDigest(document, sha256Of(`cluster-digest:${key.value}`), handedOver);
}
