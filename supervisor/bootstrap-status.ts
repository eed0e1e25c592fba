/**
 * What bootstrap is doing right now, in `/run/corium/bootstrap.json`: for consoles, also while the API is off or not
 * up yet. The record that lasts is the operation in the database.
 */
import { z } from "zod";

export const bootstrapStatusPath = (runDir: string): string => `${runDir}/bootstrap.json`;

const schema = z.object({
  /** `idle`: nothing to do until somebody claims the node or gives it a document. */
  state: z.enum(["idle", "waiting", "running", "failed", "done"]),
  /** `install` on a live system, `bootstrap` from disk. */
  kind: z.enum(["install", "bootstrap"]),
  step: z.object({ id: z.string(), title: z.string() }).optional(),
  /** What it is doing or waiting for. */
  message: z.string().optional(),
  /** Why it failed: the chain on the first line, details and hints below. */
  error: z.array(z.string()).optional(),
  warnings: z.array(z.string()).optional(),
});

export type BootstrapStatus = z.infer<typeof schema>;

export const writeBootstrapStatus = (status: BootstrapStatus): string => `${JSON.stringify(status)}\n`;

/** A torn or foreign file is no status; nobody may crash over it. */
export function parseBootstrapStatus(text: string): BootstrapStatus | undefined {
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
