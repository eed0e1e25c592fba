/** The syntaxes of names, each as the program that reads it wants it. */

/** RFC 1123 label, lower case, at most 63. */
export const isLabel = (text: string): boolean => text.length <= 63 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(text);

/** Helm release name: helm.sh/helm pkg/chartutil ValidateReleaseName, at most 53. */
export const isReleaseName = (text: string): boolean =>
  text.length <= 53 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(text);

/** No wildcard, no trailing dot; a last label of digits would be taken for an IP address. */
export function isDnsName(text: string): boolean {
  if (text.length > 253) return false;
  const labels = text.split(".");
  return (
    labels.every((label) => label.length <= 63 && /^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$/.test(label)) &&
    !/^[0-9]+$/.test(labels.at(-1) ?? "")
  );
}

/** Disk, array, volume and pool names. */
export const isStorageName = (text: string): boolean => text.length <= 32 && /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(text);

/**
 * systemd.netdev(5) allows more, but these are safe in file names and unit names too. `lo` is there already, and the
 * kernel keeps `all` and `default` for itself (Documentation/networking/ip-sysctl).
 */
export const isInterfaceName = (text: string): boolean =>
  /^[a-z0-9][a-z0-9-]{0,14}$/.test(text) && !["lo", "all", "default"].includes(text);

/** A link that the kernel or udev named: `eno1`, `bond0.7`, `enp3s0f1np1`. */
export const isLinkName = (text: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,14}$/.test(text);

/** `[prefix/]name`, apimachinery IsQualifiedName. */
export function isQualifiedName(text: string): boolean {
  const parts = text.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2 || name.length > 63 || !/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(name)) return false;
  return parts.length === 1 || isSubdomain(parts[0] ?? "");
}

const isSubdomain = (text: string): boolean =>
  text.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(text);

/** Of a label or a taint; may be empty. */
export const isLabelValue = (text: string): boolean =>
  text.length <= 63 && /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$/.test(text);

const KUBELET_LABELS = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "kubernetes.io/instance-type",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "beta.kubernetes.io/instance-type",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
  "node.kubernetes.io/instance-type",
]);

/**
 * Whether a kubelet refuses to start with `--node-labels` holding this key: the domains kubernetes.io and k8s.io
 * are closed to it, but for its own corner (k8s.io/kubelet pkg/apis/well_known_labels.go).
 */
export function isForbiddenNodeLabel(key: string): boolean {
  const slash = key.indexOf("/");
  if (slash < 0) return false;
  const domain = key.slice(0, slash);
  const isIn = (suffix: string): boolean => domain === suffix || domain.endsWith(`.${suffix}`);
  if (!isIn("kubernetes.io") && !isIn("k8s.io")) return false;
  return !KUBELET_LABELS.has(key) && !isIn("kubelet.kubernetes.io") && !isIn("node.kubernetes.io");
}

/** facts of k0s: names the manifest deployer skips, and stacks that k0s writes itself. */
export const K0S_STACKS: readonly string[] = [
  "helm",
  "api-config",
  "autopilot",
  "etcd-member",
  "bootstraprbac",
  "windows",
  "calico",
  "calico_init",
  "coredns",
  "kubeproxy",
  "kuberouter",
  "konnectivity",
  "metricserver",
  "metrics",
];

/** The known word that was probably meant, if any is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (best === undefined || distance < best.distance) best = { word: candidate, distance };
  }
  if (best === undefined) return undefined;
  const isPrefix = best.word.toLowerCase().startsWith(word.toLowerCase()) && word.length >= 3;
  return isPrefix || best.distance <= Math.max(1, Math.ceil(Math.min(word.length, best.word.length) / 2))
    ? best.word
    : undefined;
}

/** Nearer than `nearest` asks for: whoever wrote it meant the known word, and it says nothing else. */
export function isMisspelling(word: string, known: readonly string[]): boolean {
  const near = nearest(word, known);
  return near !== undefined && editDistance(word.toLowerCase(), near.toLowerCase()) <= Math.ceil(near.length / 3);
}

function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 20) return 99;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(swap, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
