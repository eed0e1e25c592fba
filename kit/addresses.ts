/**
 * Addresses that were true when the node entered service: recorded, never derived again at a later render.
 * All without a prefix length. Source: k0s facts, "first public address" and node-ip.
 */
export interface RecordedAddresses {
  /** spec.api.address */
  readonly apiAddress?: string;
  /** spec.storage.etcd.peerAddress */
  readonly peerAddress?: string;
  /** --node-ip */
  readonly nodeIp?: string;
  readonly unicastSourceIp?: string;
}
