/** Folders that k0s, its kubelet and its containers live in: a mount that has to do with them is waited for by k0s. */
const k0sPaths = [
  "/var/lib/k0s",
  "/var/lib/kubelet",
  "/var/log/pods",
  "/var/log/containers",
  "/opt/cni",
  "/etc/cni",
  "/etc/k0s",
  "/usr/libexec/k0s",
] as const;

/** Whether the point is at, under or above a folder of k0s. */
export const isK0sMount = (point: string): boolean =>
  k0sPaths.some((path) => path === point || path.startsWith(`${point}/`) || point.startsWith(`${path}/`));

/** Outer mounts first; then by name, so that the document's order decides nothing. */
export const byDepth = (a: string, b: string): number =>
  a.split("/").length - b.split("/").length || (a < b ? -1 : a > b ? 1 : 0);
