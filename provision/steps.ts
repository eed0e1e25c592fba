/** Executors of the node's own steps. What they need beside the host comes in as small ports, so tests need no database. */
import type { AppError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Secret } from "../kit/secret.ts";
import type { Executors, StepContext, StepState } from "../kit/step.ts";
import type { RenderedDigests } from "../state/model.ts";
import type { ClockFloor } from "./clock.ts";
import type { SecretSourceField } from "./driver.ts";
import type { BaselineStep, HostnameStep, NodeStep, TimersStep } from "./model.ts";
import { fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import { resolveSecrets, waitForClock } from "./driver.ts";
import { earlierExecutor } from "./earlier/driver.ts";
import { renderHosts } from "./hostname.ts";
import { askCluster } from "./join/driver.ts";
import { sha256Of } from "../kit/sha256.ts";

export interface NodePorts {
  readonly clockFloor: () => Promise<ClockFloor>;
  /** An event that a person should see later. */
  readonly warn: (message: string) => void;
  /** Of the document, by field path. */
  readonly secretSources: ReadonlyMap<string, SecretSourceField>;
  /** Of what is resolved: right kind of token, length of the pass, … . A value is a warning. */
  readonly checkSecret: (path: string, secret: Secret) => Result<string | undefined, AppError>;
  /** What a source gave, and it is good. */
  readonly noteSecret: (path: string, secret: Secret) => void;
  /** The same map that the steps see; filled here. */
  readonly secrets: Map<string, Secret>;
  readonly baseline: {
    /** Is this very node recorded? */
    isRecorded(step: BaselineStep): boolean;
    record(step: BaselineStep, rendered: RenderedDigests): Result<void, AppError>;
  };
  /** After the marker: the database knows as well, so that neither of the two alone passes for a fresh machine. */
  readonly recordMarker: (atMs: number) => void;
}

export function nodeExecutors(ports: NodePorts): Executors<NodeStep> {
  let isClockTaken = false;
  let hasAsked = false;
  return {
    "node:clock": {
      argv: () => [],
      check: async () => ok(isClockTaken ? "done" : "todo"),
      run: async (_step, { host, report }) => {
        const taken = await waitForClock(host, await ports.clockFloor(), { report });
        if (!taken.ok) return taken;
        if (taken.value !== undefined) ports.warn(taken.value);
        isClockTaken = true;
        return ok(undefined);
      },
    },
    "node:secrets": {
      argv: () => [],
      check: async (step) => ok(step.fields.every((field) => ports.secrets.has(field)) ? "done" : "todo"),
      run: async (step, { host, report }) => {
        const fields = step.fields.flatMap((path) => ports.secretSources.get(path) ?? []);
        const resolved = await resolveSecrets(host, fields, { report });
        if (!resolved.ok) return resolved;
        for (const [path, secret] of resolved.value) {
          const checked = ports.checkSecret(path, secret);
          if (!checked.ok) return checked;
          if (checked.value !== undefined) ports.warn(checked.value);
          ports.noteSecret(path, secret);
          ports.secrets.set(path, secret);
        }
        return ok(undefined);
      },
    },
    "node:join": {
      argv: () => [],
      check: async () => ok(hasAsked ? "done" : "todo"),
      run: async ({ tokenField, joining }, { host, secrets, report }) => {
        const token = secrets.get(tokenField);
        if (token === undefined) return fail("secret", `no value for ${tokenField}`);
        const asked = await askCluster(host, { token, joining }, report);
        if (!asked.ok) return asked;
        if (asked.value !== undefined) ports.warn(asked.value);
        hasAsked = true;
        return ok(undefined);
      },
    },
    "node:hostname": { argv: (step) => [["hostname", step.hostname]], check: checkHostname, run: setHostname },
    "node:earlier": earlierExecutor,
    "node:timers": { argv: () => [], check: checkTimers, run: installTimers },
    "node:baseline": {
      argv: () => [],
      check: async (step) => ok(ports.baseline.isRecorded(step) ? "done" : "todo"),
      run: async (step, { host }) => {
        const digests = await digestFiles(host, step.rendered);
        return digests.ok ? ports.baseline.record(step, digests.value) : digests;
      },
    },
    "node:marker": {
      argv: () => [],
      check: async (step, { host }) => {
        const stat = await host.files.stat(step.path);
        return stat.ok ? ok(stat.value === null ? "todo" : "done") : stat;
      },
      run: async (step, { host }) => {
        const atMs = host.clock.nowMs();
        const text = `${JSON.stringify({ at: new Date(atMs).toISOString() })}\n`;
        const written = await host.files.write(step.path, text, { mode: 0o644 });
        if (written.ok) ports.recordMarker(atMs);
        return written;
      },
    },
  };
}

async function isText(host: Host, path: string, wanted: string): Promise<boolean> {
  const text = await host.files.readText(path, { maxBytes: 1_048_576 });
  return text.ok && text.value === wanted;
}

async function checkHostname(step: HostnameStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const isDone =
    (await isText(host, "/etc/hostname", `${step.hostname}\n`)) &&
    (await isText(host, "/etc/hosts", renderHosts(step.hostname))) &&
    (await isText(host, "/proc/sys/kernel/hostname", `${step.hostname}\n`));
  return ok(isDone ? "done" : "todo");
}

async function setHostname(step: HostnameStep, { host }: StepContext): Promise<Result<void, AppError>> {
  const hosts = await host.files.write("/etc/hosts", renderHosts(step.hostname), { mode: 0o644 });
  if (!hosts.ok) return hosts;
  const name = await host.files.write("/etc/hostname", `${step.hostname}\n`, { mode: 0o644 });
  if (!name.ok) return name;
  const ran = await host.exec({ argv: ["hostname", step.hostname] });
  if (ran.exitCode !== 0) return fail("hostname", `hostname failed: ${ran.failure ?? ran.stderr.trim()}`);
  return ok(undefined);
}

async function checkTimers(step: TimersStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  for (const file of step.files) if (!(await isText(host, file.path, file.content))) return ok("todo");
  for (const unit of step.units) {
    const status = await host.systemd.status(unit);
    if (!status.ok) return status;
    if (status.value.unitFileState !== "enabled" || status.value.activeState !== "active") return ok("todo");
  }
  return ok("done");
}

async function installTimers(step: TimersStep, { host }: StepContext): Promise<Result<void, AppError>> {
  for (const { path, content, mode, owner } of step.files) {
    const written = await host.files.write(path, content, { mode, ...(owner === undefined ? {} : { owner }) });
    if (!written.ok) return written;
  }
  if (step.units.length === 0) return ok(undefined);
  const reloaded = await host.systemd.daemonReload();
  if (!reloaded.ok) return reloaded;
  for (const unit of step.units) {
    const enabled = await host.systemd.enable(unit);
    if (!enabled.ok) return enabled;
    const started = await host.systemd.start(unit);
    if (!started.ok) return started;
  }
  return ok(undefined);
}

/** Of the files as they are on the node, secrets filled in: drift is what differs from these. */
export async function digestFiles(host: Host, paths: readonly string[]): Promise<Result<RenderedDigests, AppError>> {
  const digests: Record<string, string> = {};
  for (const path of [...paths].sort()) {
    const bytes = await host.files.read(path);
    if (!bytes.ok) return fail("digest", `cannot read ${path} back`, { cause: bytes.error });
    digests[path] = sha256Of(bytes.value);
  }
  return ok(digests);
}
