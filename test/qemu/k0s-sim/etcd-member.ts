/** The object that each controller makes of its place in etcd when it starts (etcd_member_reconciler.go), and never again. */
import { callApi, type KubeConfig } from "./api-client.ts";
import type { Cluster } from "./cluster.ts";
import { pathOf, type KubeObject, type Resource } from "./resources.ts";
import { log } from "./stand-in.ts";
import type { Store } from "./store.ts";

const MEMBERS: Resource = {
  group: "etcd.k0sproject.io",
  version: "v1beta1",
  kind: "EtcdMember",
  plural: "etcdmembers",
  isNamespaced: false,
};

export function announceMember(options: {
  readonly name: string;
  readonly peerAddress: string;
  readonly store: Store;
  readonly cluster: Cluster;
  readonly admin: KubeConfig;
}): { readonly stop: () => void } {
  const { name, peerAddress, store, cluster, admin } = options;
  const object: KubeObject = {
    apiVersion: "etcd.k0sproject.io/v1beta1",
    kind: "EtcdMember",
    metadata: { name },
    spec: {},
    status: { peerAddress, memberID: "1", conditions: [{ type: "Joined", status: "True" }] },
  };
  const announce = async (): Promise<void> => {
    const leader = cluster.leader();
    if (leader === undefined) return;
    if (leader.api === undefined) store.put(object);
    else if (!(await isTaken({ ...admin, server: leader.api }))) return;
    clearInterval(timer);
  };
  const isTaken = async (config: KubeConfig): Promise<boolean> =>
    (await callApi(config, "PUT", pathOf(MEMBERS, undefined, name), object, 1500)).status === 200;
  const timer = setInterval(() => {
    announce().catch((error: unknown) => log("warning", String(error), "etcdMemberReconciler"));
  }, 1000);
  return {
    stop: () => {
      clearInterval(timer);
    },
  };
}
