/** Whether Kubernetes says that this node is ready, as far as this node can know. */
import type { Document } from "../config/document.ts";
import type { Host } from "../kit/ports.ts";
import { parseStatus } from "../k0s/parse.ts";

export async function readNodeReady(host: Host, document: Document | undefined): Promise<boolean | undefined> {
  // A plain controller has no Node object.
  if (document?.role === undefined || document.role === "controller") return undefined;
  // It hangs while k0s starts (facts: status has no timeout of its own).
  const result = await host.exec({ argv: ["k0s", "status", "-o", "json"], timeoutMs: 5_000 });
  if (result.exitCode !== 0) return undefined;
  const status = parseStatus(result.stdout);
  return status.ok ? status.value.isConnected : undefined;
}
