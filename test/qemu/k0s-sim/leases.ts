/**
 * The leases by which k0s counts its controllers and names their leader, in kube-node-lease: `k0s-ctrl-NAME` of each,
 * `k0s-endpoint-reconciler` of who leads; both held by the id of this run (pkg/component/controller).
 */
import { randomBytes } from "node:crypto";
import { callApi, type KubeConfig } from "./api-client.ts";
import type { Cluster } from "./cluster.ts";
import { textAt } from "./config.ts";
import { findResource, pathOf, type KubeObject } from "./resources.ts";
import { log } from "./stand-in.ts";
import type { Store } from "./store.ts";

const NAMESPACE = "kube-node-lease";
const DURATION_SECONDS = 60;
/** Seldom: each renewal is a write that every follower copies. */
const RENEW_MS = 20_000;
const LOOK_MS = 1000;

export function startLeases(options: {
  readonly name: string;
  readonly store: Store;
  readonly cluster: Cluster;
  /** To write where the leader is. */
  readonly admin: KubeConfig;
}): { readonly stop: () => void } {
  const { name, store, cluster, admin } = options;
  const run = randomBytes(32).toString("hex");

  async function keep(lease: string): Promise<void> {
    const resource = findResource(store.resources(), "leases");
    const leader = cluster.leader();
    if (resource === undefined || leader === undefined) return;
    const known = store.get(resource, NAMESPACE, lease);
    const renewed = Date.parse(textAt(known, "spec", "renewTime"));
    if (textAt(known, "spec", "holderIdentity") === run && Date.now() - renewed < RENEW_MS) return;
    const object: KubeObject = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: lease, namespace: NAMESPACE },
      spec: {
        holderIdentity: run,
        leaseDurationSeconds: DURATION_SECONDS,
        renewTime: new Date().toISOString().replace("Z", "000Z"),
      },
    };
    if (leader.api === undefined) store.put(object);
    else await callApi({ ...admin, server: leader.api }, "PUT", pathOf(resource, NAMESPACE, lease), object, 1500);
  }

  const timer = setInterval(() => {
    const own = keep(`k0s-ctrl-${name}`);
    const leading = cluster.isLeader() ? keep("k0s-endpoint-reconciler") : Promise.resolve();
    Promise.all([own, leading]).catch((error: unknown) => log("warning", String(error), "leaderelection"));
  }, LOOK_MS);
  return {
    stop: () => {
      clearInterval(timer);
    },
  };
}
