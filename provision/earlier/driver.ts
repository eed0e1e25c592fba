/** What earlier documents of a first boot had written: looked for, and removed. */
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { StepContext, StepState } from "../../kit/step.ts";
import { mappingName } from "../../luks/argv.ts";
import { CRYPTTAB, lineNames, withoutLines } from "../../luks/render.ts";
import type { EarlierStep } from "../model.ts";
import type { Earlier } from "./plan.ts";

/** The part of it that is there. */
export async function findEarlier(host: Pick<Host, "files">, wanted: Earlier): Promise<Earlier> {
  const files: string[] = [];
  for (const path of wanted.files) {
    const stat = await host.files.stat(path);
    if (stat.ok && stat.value !== null) files.push(path);
  }
  if (wanted.volumes.length === 0) return { files, volumes: [] };
  const names = lineNames(await readCrypttab(host));
  return { files, volumes: wanted.volumes.filter((name) => names.includes(mappingName(name))) };
}

async function readCrypttab(host: Pick<Host, "files">): Promise<string> {
  const text = await host.files.readText(CRYPTTAB, { maxBytes: 1_048_576 });
  return text.ok ? text.value : "";
}

/** In `node:earlier`. */
export const earlierExecutor = {
  argv: ({ overlays, timers }: EarlierStep) => [
    ...timers.map((timer) => ["systemctl", "disable", "--now", timer]),
    ...overlays.map((name) => ["networkctl", "delete", name]),
  ],
  check: async (step: EarlierStep, { host }: StepContext): Promise<Result<StepState, AppError>> => {
    for (const path of step.files) {
      const stat = await host.files.stat(path);
      if (!stat.ok) return stat;
      if (stat.value !== null) return ok("todo");
    }
    const names = step.mappings.length === 0 ? [] : lineNames(await readCrypttab(host));
    return ok(step.mappings.some((name) => names.includes(name)) ? "todo" : "done");
  },
  run: async (
    { files, overlays, timers, mappings }: EarlierStep,
    { host }: StepContext,
  ): Promise<Result<void, AppError>> => {
    for (const timer of timers) {
      const stopped = await host.systemd.stop(timer);
      if (!stopped.ok && stopped.error.code !== "unit-not-found") return stopped;
      const disabled = await host.systemd.disable(timer);
      if (!disabled.ok && disabled.error.code !== "unit-not-found") return disabled;
    }
    // The interface with its keys; without it networkctl says no.
    for (const name of overlays) await host.exec({ argv: ["networkctl", "delete", name], timeoutMs: 20_000 });
    for (const path of files) {
      const removed = await host.files.remove(path);
      if (!removed.ok) return removed;
    }
    if (mappings.length > 0) {
      const text = withoutLines(await readCrypttab(host), mappings);
      const written = await host.files.write(CRYPTTAB, text, { mode: 0o644 });
      if (!written.ok) return written;
    }
    if (overlays.length > 0) {
      const reloaded = await host.exec({ argv: ["networkctl", "reload"], timeoutMs: 30_000 });
      if (reloaded.exitCode !== 0) return fail("networkd", "networkd did not reload its files");
    }
    return host.systemd.daemonReload();
  },
};
