/** What is read from the machine before anything is decided, and the waits of a first boot. Changes nothing. */
import type { AppError } from "../kit/app-error.ts";
import type { SecretSource } from "../config/document.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Attempt } from "./secrets.ts";
import type { ClockFloor } from "./clock.ts";
import type { MachineFacts, Network, Route } from "./facts.ts";
import { appError, fail } from "../kit/app-error.ts";
import { err, ok } from "../kit/result.ts";
import { SITE_AUTHORITY } from "../kit/paths.ts";
import { Secret } from "../kit/secret.ts";
import { parseDuration } from "../config/duration.ts";
import { judgeClock } from "./clock.ts";
import { parseLinks, parseMemory, parseNameservers, parseRoutes } from "./facts.ts";
import { backoffMs, judgeFileError, judgeHttpError, judgeStatus, judgeText, shownUrl } from "./secrets.ts";

/** The wait for whatever comes: long enough for a slow console, short enough for a person. */
const pollMs = 1_000;

export async function readFacts(host: Host): Promise<Result<MachineFacts, AppError>> {
  const network = await readNetwork(host);
  if (!network.ok) return network;
  const cgroups = await host.files.stat("/sys/fs/cgroup/cgroup.controllers");
  const k0sVersion = await readK0sVersion(host);
  const systemUuid = (await textOf(host, "/sys/class/dmi/id/product_uuid")).trim();
  return ok({
    hostname: (await textOf(host, "/proc/sys/kernel/hostname")).trim(),
    machineId: (await textOf(host, "/etc/machine-id")).trim(),
    ...(systemUuid === "" ? {} : { systemUuid }),
    ...network.value,
    nameservers: await readNameservers(host),
    memoryBytes: parseMemory(await textOf(host, "/proc/meminfo")),
    kernel: (await textOf(host, "/proc/sys/kernel/osrelease")).trim(),
    hasCgroup2: cgroups.ok && cgroups.value !== null,
    oldK0s: await findOldK0s(host),
    ...(k0sVersion === undefined ? {} : { k0sVersion }),
  });
}

export async function readNetwork(host: Host): Promise<Result<Network, AppError>> {
  const links = await readJson(host, ["ip", "-j", "-d", "addr"], parseLinks);
  if (!links.ok) return links;
  const routes: Route[] = [];
  for (const family of [4, 6] as const) {
    const found = await readJson(host, ["ip", "-j", `-${family}`, "route", "show", "table", "main"], (json) =>
      parseRoutes(json, family),
    );
    if (!found.ok) return found;
    routes.push(...found.value);
  }
  return ok({ links: links.value, routes });
}

async function readJson<T>(
  host: Host,
  argv: readonly string[],
  parse: (json: string) => Result<T, AppError>,
): Promise<Result<T, AppError>> {
  const ran = await host.exec({ argv, timeoutMs: 10_000 });
  if (ran.exitCode !== 0) return fail("facts", `${argv.join(" ")} failed: ${ran.failure ?? ran.stderr.trim()}`);
  return parse(ran.stdout);
}

const textOf = async (host: Host, path: string): Promise<string> => {
  const text = await host.files.readText(path, { maxBytes: 65_536 });
  return text.ok ? text.value : "";
};

/** Behind systemd-resolved's stub the servers are in its own file. */
async function readNameservers(host: Host): Promise<readonly string[]> {
  const upstream = parseNameservers(await textOf(host, "/run/systemd/resolve/resolv.conf"));
  return upstream.length > 0 ? upstream : parseNameservers(await textOf(host, "/etc/resolv.conf"));
}

async function findOldK0s(host: Host): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of ["pki", "etcd", "db", "kubelet.conf", "kubelet"]) {
    const stat = await host.files.stat(`/var/lib/k0s/${name}`);
    if (!stat.ok || stat.value === null) continue;
    // Empty folders come with the image (tmpfiles) and with mount points.
    const entries = stat.value.kind === "directory" ? await host.files.list(`/var/lib/k0s/${name}`) : undefined;
    if (entries?.ok !== true || entries.value.length > 0) found.push(name);
  }
  return found;
}

async function readK0sVersion(host: Host): Promise<string | undefined> {
  const ran = await host.exec({ argv: ["k0s", "version"], timeoutMs: 30_000 });
  return ran.exitCode === 0 ? /v\d\S*/.exec(ran.stdout)?.[0] : undefined;
}

/** The image's age is a floor: systemd keeps it as the time of this file (systemd-timesyncd(8), "clock-epoch"). */
export async function readImageTime(host: Host): Promise<number> {
  for (const path of ["/usr/lib/clock-epoch", "/usr/lib/os-release"]) {
    const stat = await host.files.stat(path);
    if (stat.ok && stat.value !== null) return stat.value.mtimeMs;
  }
  return 0;
}

export async function isClockSynced(host: Host): Promise<boolean> {
  const flag = await host.files.stat("/run/systemd/timesync/synchronized");
  if (flag.ok && flag.value !== null) return true;
  const ran = await host.exec({ argv: ["timedatectl", "show", "-p", "NTPSynchronized", "--value"], timeoutMs: 10_000 });
  return ran.stdout.trim() === "yes";
}

export interface Waiting {
  /** Only called when the message is another one. */
  readonly report: (message: string) => void;
  readonly signal?: AbortSignal;
}

/** Resolves to a warning when the clock was taken unconfirmed; fails only when it is aborted. */
export async function waitForClock(
  host: Host,
  floor: ClockFloor,
  { report, signal }: Waiting,
): Promise<Result<string | undefined, AppError>> {
  let last = "";
  for (;;) {
    const verdict = judgeClock({
      nowMs: host.clock.nowMs(),
      floor,
      isSynced: await isClockSynced(host),
      // Since boot: time servers were asked from then on, and a retry need not wait again.
      waitedMs: host.clock.monotonicMs(),
    });
    if (verdict.kind === "ok") return ok(undefined);
    if (verdict.kind === "warn") return ok(verdict.message);
    if (verdict.message !== last) report(verdict.message);
    last = verdict.message;
    await host.clock.sleep(pollMs, signal);
    if (signal?.aborted === true) return fail("stopped", "stopped while waiting for the right time");
  }
}

export interface SecretSourceField {
  /** Where it stands in the document: the key of the resolved secret. */
  readonly path: string;
  readonly source: SecretSource;
  /** Where an earlier attempt has put it: a source may give it once only. One try at the source, then this. */
  readonly fallbackFile?: string;
  /** Is it this source that gave what is stored? Without it: whatever is stored will do. */
  readonly isFromSource?: (stored: string) => boolean;
}

/** All of them at once, so that their waits overlap; every failure is told, not only the first. */
export async function resolveSecrets(
  host: Host,
  fields: readonly SecretSourceField[],
  waiting: Waiting,
): Promise<Result<ReadonlyMap<string, Secret>, AppError>> {
  const outcomes = await Promise.all(
    fields.map(async (field) => ({ field, got: await resolveOne(host, field, waiting) })),
  );
  const failures = outcomes.flatMap(({ field, got }) => (got.ok ? [] : [{ field, error: got.error }]));
  const [first, ...more] = failures;
  if (first !== undefined) {
    return err(
      appError("secret", `no value for ${first.field.path}`, {
        cause: first.error,
        details: more.map(({ field, error }) => `no value for ${field.path}: ${error.message}`),
      }),
    );
  }
  return ok(new Map(outcomes.flatMap(({ field, got }) => (got.ok ? [[field.path, got.value] as const] : []))));
}

async function resolveOne(
  host: Host,
  field: SecretSourceField,
  { report, signal }: Waiting,
): Promise<Result<Secret, AppError>> {
  const { source } = field;
  const stored = field.fallbackFile === undefined ? undefined : await host.files.readText(field.fallbackFile);
  const text = stored?.ok === true ? stored.value.trim() : "";
  const fallback = field.isFromSource?.(text) === false ? "" : text;
  const startMs = host.clock.monotonicMs();
  const limitMs = fallback !== "" || source.waitFor === undefined ? 0 : (parseDuration(source.waitFor) ?? 0);
  for (let attempt = 0; ; attempt++) {
    const outcome = await attemptSecret(host, field);
    if (outcome.kind === "value") return ok(new Secret(field.path, outcome.text));
    const leftMs = limitMs - (host.clock.monotonicMs() - startMs);
    if (outcome.kind === "never" || leftMs <= 0) {
      return fallback === "" ? err(outcome.error) : ok(new Secret(field.path, fallback));
    }
    const reason = outcome.error.cause?.message ?? outcome.error.message;
    report(`waiting up to ${source.waitFor ?? ""} for ${field.path}: ${reason}`);
    await host.clock.sleep(Math.min(backoffMs(attempt), leftMs), signal);
    if (signal?.aborted === true) return fail("stopped", `stopped while waiting for ${field.path}`);
  }
}

async function attemptSecret(host: Host, { path, source }: SecretSourceField): Promise<Attempt> {
  if (source.file !== undefined) {
    const text = await host.files.readText(source.file, { maxBytes: 1_048_576 });
    return text.ok ? judgeText(text.value, source.file) : judgeFileError(text.error, source.file);
  }
  let bearer: Secret | undefined;
  if (source.authFile !== undefined) {
    const text = await host.files.readText(source.authFile, { maxBytes: 65_536 });
    const auth = text.ok ? judgeText(text.value, source.authFile) : judgeFileError(text.error, source.authFile);
    if (auth.kind !== "value") return auth;
    bearer = new Secret(`${path}.authFile`, auth.text);
  }
  const url = source.url ?? "";
  const authority = await host.files.readText(SITE_AUTHORITY, { maxBytes: 1_048_576 });
  const answer = await host.http({
    url,
    timeoutMs: 30_000,
    maxBytes: 1_048_576,
    ...(bearer === undefined ? {} : { bearer }),
    ...(authority.ok ? { trust: authority.value } : {}),
  });
  if (!answer.ok) return judgeHttpError(answer.error, shownUrl(url), await isClockSynced(host));
  return judgeStatus(answer.value.status, new TextDecoder().decode(answer.value.body), shownUrl(url));
}
