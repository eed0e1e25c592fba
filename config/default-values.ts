/** What a field is when it is not given. Defaults that depend on another field are in defaults.ts. */
export const DEFAULTS = {
  clusterName: "corium",
  podCIDR: "10.244.0.0/16",
  serviceCIDR: "10.96.0.0/12",
  cni: "kuberouter",
  addonNamespace: "default",
  automatic: "none",
  schedule: "daily",
  backupPath: "/var/lib/corium/backups",
  backupKeep: 7,
  filesystem: "ext4",
  unlock: "tpm2",
  vdevType: "stripe",
} as const;
