import type { Document } from "../../config/document.ts";

/** A document as the parser leaves it, with every default filled in. */
export function makeDocument(changes: Partial<Document> = {}): Document {
  const role = changes.role ?? "single";
  return {
    role,
    cluster: { name: "corium", subjectAltNames: [] },
    network: { podCIDR: "10.244.0.0/16", serviceCIDR: "10.96.0.0/12", cni: "kuberouter" },
    storage: { type: role === "single" ? "sqlite" : "etcd" },
    node: { labels: {}, taints: [] },
    addons: [],
    manifests: [],
    ha: { enabled: false, unicastPeers: [] },
    upgrades: { automatic: "none", schedule: "daily" },
    raid: [],
    luks: [],
    disks: [],
    zfs: [],
    wireguard: [],
    k0s: { patch: {} },
    kubernetes: {},
    ...changes,
  };
}
