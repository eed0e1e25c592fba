import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { Executors, StepContext, StepState } from "../kit/step.ts";
import { isKey, privateKeyFrom, publicKeyOf } from "./key.ts";
import type { KeyFile, LinkStatus, WireguardInterfaceStep, WireguardKeyStep, WireguardStep } from "./model.ts";
import { parseNetworkctl, runsWithKeys } from "./parse.ts";
import { keyFolder, keyMode, owner, privateKeyPath } from "./render.ts";
import type { OverlayReport } from "./report.ts";
import { isLinkUp, reportOverlay } from "./report.ts";
import type { OverlayMemory, WatchedOverlay } from "./watch.ts";
import { readInterfaces } from "./watch/driver.ts";

const upTimeoutMs = 30_000;

export const wireguardExecutors: Executors<WireguardStep> = {
  "wireguard:key": {
    argv: () => [],
    check: (step, context) => checkKeys(step, context),
    run: (step, context) => writeKeys(step, context),
  },
  "wireguard:interface": {
    argv: (step) => [
      ["networkctl", "reload"],
      ["networkctl", "reconfigure", step.name],
    ],
    check: (step, { host }) => checkInterface(step, host),
    run: (step, context) => bringUp(step, context),
  },
};

/**
 * The overlays of the document as they are now; the public key is known even while an interface is down. `memory`: what
 * was found out about peers over time.
 */
export async function readOverlay(
  host: Host,
  wanted: readonly WatchedOverlay[],
  memory: OverlayMemory = [],
): Promise<readonly OverlayReport[]> {
  if (wanted.length === 0) return [];
  const interfaces = await readInterfaces(host);
  const nowSeconds = host.clock.nowMs() / 1000;
  return Promise.all(
    wanted.map(async (each) => {
      const status = interfaces.find((found) => found.name === each.name);
      const kept = await host.files.readText(privateKeyPath(each.name));
      const keptKey = kept.ok ? publicKeyOf(kept.value) : undefined;
      const link = await readLink(host, each.name);
      return reportOverlay(each, { link, status, keptKey, memory, nowSeconds });
    }),
  );
}

async function readLink(host: Host, name: string): Promise<LinkStatus | undefined> {
  const result = await host.exec({ argv: ["networkctl", "--json=short", "status", name], timeoutMs: 10_000 });
  return result.exitCode === 0 ? parseNetworkctl(result.stdout) : undefined;
}

async function checkKeys(step: WireguardKeyStep, context: StepContext): Promise<Result<StepState, AppError>> {
  for (const key of step.keys) {
    const found = await context.host.files.readText(key.path);
    if (!found.ok) return ok("todo");
    const wanted = wantedKey(key, context);
    if (!wanted.ok) return wanted;
    const isRight = wanted.value === undefined ? await isMade(key, found.value, context) : found.value === wanted.value;
    if (!isRight) return ok("todo");
  }
  return ok("done");
}

/** A key that was made once stays: its public half is in the peers' documents. One that was given is not the node's own. */
async function isMade({ madeMark }: KeyFile, text: string, { host }: StepContext): Promise<boolean> {
  const mark = madeMark === undefined ? undefined : await host.files.stat(madeMark);
  return mark?.ok === true && mark.value !== null && isKey(text.trim());
}

/** `undefined`: any key that this node made will do. */
function wantedKey({ field }: KeyFile, { secrets }: StepContext): Result<string | undefined, AppError> {
  if (field === undefined) return ok(undefined);
  const secret = secrets.get(field);
  if (secret === undefined) return fail("secret-missing", `${field} is not resolved yet`);
  return ok(`${secret.reveal().trim()}\n`);
}

async function writeKeys(step: WireguardKeyStep, context: StepContext): Promise<Result<void, AppError>> {
  const { host } = context;
  const made = await host.files.mkdir(keyFolder.path, { mode: keyFolder.mode, owner });
  if (!made.ok) return made;
  for (const key of step.keys) {
    const wanted = wantedKey(key, context);
    if (!wanted.ok) return wanted;
    const found = await host.files.readText(key.path);
    const isGiven = wanted.value !== undefined;
    if (found.ok && (isGiven ? found.value === wanted.value : await isMade(key, found.value, context))) continue;
    if (isGiven && key.madeMark !== undefined) {
      const removed = await host.files.remove(key.madeMark);
      if (!removed.ok) return removed;
    }
    const content = wanted.value ?? `${privateKeyFrom(host.random.bytes(32))}\n`;
    const written = await host.files.write(key.path, content, { mode: keyMode, owner });
    if (!written.ok) return written;
    if (isGiven || key.madeMark === undefined) continue;
    const marked = await host.files.write(key.madeMark, "", { mode: keyMode, owner });
    if (!marked.ok) return marked;
  }
  return ok(undefined);
}

async function checkInterface(step: WireguardInterfaceStep, host: Host): Promise<Result<StepState, AppError>> {
  for (const file of step.files) if (!(await isWritten(host, file))) return ok("todo");
  const link = await readLink(host, step.name);
  const isRight = isLinkUp(step.addresses, link) && hasMtu(step, link) && (await hasItsKeys(step, host));
  return ok(isRight ? "done" : "todo");
}

const hasMtu = ({ mtu }: WireguardInterfaceStep, link: LinkStatus | undefined): boolean =>
  mtu === undefined || link?.mtu === mtu;

/** networkd reads the files of keys only when it makes the interface. */
async function hasItsKeys({ name, sharedKeyPaths }: WireguardInterfaceStep, host: Host): Promise<boolean> {
  const dump = await host.exec({ argv: ["wg", "show", "all", "dump"], timeoutMs: 10_000 });
  if (dump.exitCode !== 0) return true;
  const own = await host.files.readText(privateKeyPath(name));
  const publicKey = own.ok ? publicKeyOf(own.value) : undefined;
  const shared = new Map<string, string>();
  for (const [peer, path] of sharedKeyPaths) {
    const text = await host.files.readText(path);
    if (text.ok) shared.set(peer, text.value.trim());
  }
  return runsWithKeys(dump.stdout, name, { shared, ...(publicKey === undefined ? {} : { publicKey }) });
}

async function isWritten(host: Host, file: RenderedFile): Promise<boolean> {
  const found = await host.files.readText(file.path);
  return found.ok && found.value === file.content;
}

async function bringUp(step: WireguardInterfaceStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  // A netdev that is written again, even unchanged, makes networkd drop all sessions: only what differs is written.
  const changed: string[] = [];
  const before = await readLink(host, step.name);
  // networkd changes neither the MTU nor, while its netdev stays, the keys of an interface that exists.
  const hasKeys = before === undefined || (await hasItsKeys(step, host));
  for (const file of step.files) {
    if ((await isWritten(host, file)) && (hasKeys || file.path !== step.netdevPath)) continue;
    const how = file.owner === undefined ? { mode: file.mode } : { mode: file.mode, owner: file.owner };
    const written = await host.files.write(file.path, file.content, how);
    if (!written.ok) return written;
    changed.push(file.path);
  }
  if (changed.some((path) => path.startsWith("/etc/systemd/system/"))) {
    const reloaded = await host.systemd.daemonReload();
    if (!reloaded.ok) return reloaded;
  }
  if (before !== undefined && !(hasMtu(step, before) && hasKeys))
    await host.exec({ argv: ["networkctl", "delete", step.name], timeoutMs: 20_000 });
  const reloaded = await host.exec({ argv: ["networkctl", "reload"], timeoutMs: 30_000 });
  if (reloaded.exitCode !== 0)
    return fail("networkd", "networkd did not reload its files", { details: lines(reloaded.stderr) });
  // reload alone leaves the routes of changed peers as they were.
  if (before !== undefined) await host.exec({ argv: ["networkctl", "reconfigure", step.name], timeoutMs: 30_000 });
  return waitUntilUp(step, host, report);
}

async function waitUntilUp(
  step: WireguardInterfaceStep,
  host: Host,
  report: StepContext["report"],
): Promise<Result<void, AppError>> {
  const until = host.clock.monotonicMs() + upTimeoutMs;
  while (!isLinkUp(step.addresses, await readLink(host, step.name))) {
    if (host.clock.monotonicMs() > until) {
      const tail = await host.systemd.journalTail("systemd-networkd.service", 5);
      return fail("overlay-down", `overlay ${step.name} did not come up within ${upTimeoutMs / 1000} s`, {
        details: tail.ok ? tail.value : [],
        hint: "networkd drops an interface whose key it can't read or whose addresses it can't set",
      });
    }
    report(`waiting for overlay ${step.name} to be up`);
    await host.clock.sleep(500);
  }
  return ok(undefined);
}

const lines = (text: string): readonly string[] => text.split("\n").filter((line) => line.trim() !== "");
