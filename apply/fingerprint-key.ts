import type { Random } from "../kit/ports.ts";
import type { Meta } from "../state/meta.ts";

/** Of this node, made once: what is keyed with it tells equal secrets apart and gives none away. */
export function nodeFingerprintKey(meta: Pick<Meta, "get" | "set">, random: Random): string {
  const known = meta.get("fingerprint-key");
  if (known !== undefined) return known;
  const made = Buffer.from(random.bytes(32)).toString("hex");
  meta.set("fingerprint-key", made);
  return made;
}
