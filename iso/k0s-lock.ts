import { z } from "zod";
import lockFile from "./k0s.lock.json" with { type: "json" };

const lockSchema = z.strictObject({
  default: z.string(),
  versions: z.record(z.string(), z.record(z.string(), z.string().regex(/^[0-9a-f]{64}$/))),
});

/** The k0s versions of this release with the SHA-256 of each architecture's binary; in the compiled program too. */
export const k0sLock: z.infer<typeof lockSchema> = lockSchema.parse(lockFile);

/** What `kubernetes.version` may name without a warning, the same on a workstation and on the node. */
export const listedK0sVersions: readonly string[] = Object.keys(k0sLock.versions);
