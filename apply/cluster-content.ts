/** What of a document is one for all controllers of a cluster, because k0s's leader applies its own. */
import { createHmac } from "node:crypto";
import type { FieldChange } from "../api/contract.ts";
import type { Document } from "../config/document.ts";
import type { Baseline } from "../state/model.ts";
import { canonicalJson } from "./canonical.ts";
import { diffFields } from "./fields.ts";
import { withSortedFiles } from "./input-hash.ts";

const CONTENT = /^(?:addons\[|manifests\[|k0s\.patch$)/;
/** What else must be the same everywhere: it can't change any more, but it may have been given differently. */
const CLUSTER_WIDE = /^(?:cluster|network|storage)\./;

/** `handedOver`: a stack that k0s reads on no controller any more. */
export const changesContent = (fields: readonly FieldChange[], handedOver?: string): boolean =>
  fields.some(({ path }) => CONTENT.test(path) && path !== `manifests[${handedOver}]`);

/** Only etcd takes a second controller. */
export const mayBeSeveral = ({ role, storage }: Document): boolean =>
  (role === "controller" || role === "controller+worker") && storage.type === "etcd";

/**
 * HMAC-SHA-256 in hex over the cluster-wide part, defaults filled in: equal on two controllers when that part says the
 * same. `key` is one that all controllers share and readers of a status do not have, so that nobody can try passwords
 * of add-on values until the digest fits. `handedOver`: a stack that no k0s reads any more; some may have dropped it.
 */
export function clusterDigest(document: Document, key: string, handedOver?: string): string {
  const isOver = (path: string): boolean =>
    handedOver !== undefined && (path === `manifests[${handedOver}]` || path.startsWith("network.handover."));
  const part = diffFields({}, document).changes.flatMap(({ path, name, new: value }) => {
    if (isOver(path) || (!CONTENT.test(path) && !CLUSTER_WIDE.test(path))) return [];
    return [[path, name === "manifests" ? withSortedFiles(value) : value]];
  });
  return createHmac("sha256", key).update(canonicalJson(part)).digest("hex");
}

/** This node, as its k0s knows it. */
export const ownOf = ({
  hostname,
  addresses: { peerAddress },
}: Baseline): { readonly hostname: string; readonly peerAddress?: string } => ({
  hostname,
  ...(peerAddress === undefined ? {} : { peerAddress }),
});
