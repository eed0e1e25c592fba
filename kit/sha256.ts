import { createHash } from "node:crypto";

/** In hex, lower case. */
export const sha256Of = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");
