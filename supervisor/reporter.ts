/**
 * Where bootstrap says what it does: the status file of the consoles and, once there is one, the operation. Status
 * writes are queued, so that the synchronous callbacks of the step engine keep their order.
 */
import type { Files } from "../kit/ports.ts";
import type { BootstrapStatus } from "./bootstrap-status.ts";
import { bootstrapStatusPath, writeBootstrapStatus } from "./bootstrap-status.ts";

export interface Reporter {
  /** Replaces what was said before, warnings aside. */
  say(status: Omit<BootstrapStatus, "kind" | "warnings">): void;
  warn(message: string): void;
  /** Everything said is on its way out. */
  flush(): Promise<void>;
}

export function createReporter(
  files: Files,
  runDir: string,
  kind: BootstrapStatus["kind"],
  log: (line: string) => void,
): Reporter {
  const warnings: string[] = [];
  let last = "";
  let status: BootstrapStatus = { state: "running", kind };
  let pending: Promise<unknown> = Promise.resolve();
  const publish = (): void => {
    const text = writeBootstrapStatus(status);
    if (text === last) return;
    last = text;
    // A console that shows nothing is no reason to stop: the operation has it all.
    pending = pending
      .then(() => files.write(bootstrapStatusPath(runDir), text, { mode: 0o644 }))
      .catch(() => undefined);
  };
  return {
    say(next) {
      const line = next.error?.join("\n") ?? next.message;
      if (line !== undefined && line !== status.message) log(line);
      status = { ...next, kind, ...(warnings.length === 0 ? {} : { warnings: [...warnings] }) };
      publish();
    },
    warn(message) {
      if (warnings.includes(message)) return;
      log(`warning: ${message}`);
      warnings.push(message);
      status = { ...status, warnings: [...warnings] };
      publish();
    },
    flush: async () => void (await pending),
  };
}
