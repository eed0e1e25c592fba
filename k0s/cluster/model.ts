/** The controllers of a cluster, as etcd and the lease of k0s's leader name them. */
export interface ControlPlane {
  /** Names of etcd's members, which are host names; sorted. */
  readonly members: readonly string[];
  /** Whose charts and manifests count now; absent between two elections. */
  readonly leader?: string;
}
