/** Nodes as Kubernetes has them, as far as cordoning and draining need. */
export interface ClusterNode {
  readonly name: string;
  readonly isReady: boolean;
  readonly isCordoned: boolean;
  /** By us: only then may we uncordon it. */
  readonly isOurs: boolean;
}

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export interface Pod extends PodName {
  readonly labels: Readonly<Record<string, string>>;
}

/** A PodDisruptionBudget that allows nothing now. */
export interface Budget extends PodName {
  /** `spec.selector`, as it came. */
  readonly selector: unknown;
  /** In numbers, for people: `2 of 2 healthy`. */
  readonly state: string;
}

/** What one run of `kubectl drain` came to. */
export type DrainRun =
  | { readonly kind: "drained" }
  /** Pods that could not be evicted yet, or have not ended yet. */
  | { readonly kind: "blocked"; readonly pods: readonly PodName[]; readonly said: string }
  /** The cluster has no such node: nothing runs there that could be waited for. */
  | { readonly kind: "gone" }
  /** It will not go without force, however long one waits. */
  | { readonly kind: "refused"; readonly said: string };
