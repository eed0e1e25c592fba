/** The controllers of a cluster, as etcd and the lease of k0s's leader name them. */
export interface ControlPlane {
  /** Names of etcd's members, sorted: host names, unless a patch gives others. */
  readonly members: readonly string[];
  /** Which of them this node is. */
  readonly self?: string;
  /** Host name of the controller whose charts and manifests count now; absent between two elections. */
  readonly leader?: string;
}
