/** Who leads, as the leases of the controllers say it. */
import { parseJson } from "../../kit/json.ts";
import { valueAt } from "../merge.ts";

/** Each controller renews a lease of its own. */
const CONTROLLER_LEASE = "k0s-ctrl-";
/** Who holds this one leads. The name is older than what it is used for now (k0s: cmd/controller). */
const LEADER_LEASE = "k0s-endpoint-reconciler";

/**
 * `kubectl get leases -n kube-node-lease -o json`: both kinds of lease are held by the id of a run of k0s, so that the
 * leader is the controller whose own lease has the same holder.
 */
export function parseLeader(stdout: string): string | undefined {
  const items = valueAt(parseJson(stdout), ["items"]);
  const leases = (Array.isArray(items) ? items : []).map((item: unknown) => ({
    name: String(valueAt(item, ["metadata", "name"])),
    holder: valueAt(item, ["spec", "holderIdentity"]),
  }));
  const leading = leases.find(({ name }) => name === LEADER_LEASE)?.holder;
  if (typeof leading !== "string" || leading === "") return undefined;
  const own = leases.find(({ name, holder }) => name.startsWith(CONTROLLER_LEASE) && holder === leading);
  return own?.name.slice(CONTROLLER_LEASE.length);
}
