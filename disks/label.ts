import { sha256Of } from "../kit/sha256.ts";

const limits = { ext4: 16, xfs: 12 } as const;

/**
 * `corium-NAME`, as long as the filesystem can hold it (ext4 16 bytes, xfs 12). A longer one keeps its start, and
 * five letters of a digest keep `data-a` and `data-b` apart.
 */
export function filesystemLabel(name: string, filesystem: "ext4" | "xfs"): string {
  const label = `corium-${name}`;
  const limit = limits[filesystem];
  if (label.length <= limit) return label;
  const digest = BigInt(`0x${sha256Of(name)}`).toString(36);
  return `${label.slice(0, limit - 5)}${digest.slice(-5)}`;
}
