/** First boot, in the order of the specification: from a document to a node in service, or to an installed disk. */
import type { Document, LuksSpec } from "../config/document.ts";
import type { SecretField } from "../config/secrets.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { BootstrapPlan, NamedSecret } from "../provision/plan.ts";
import type { BaselineStep } from "../provision/model.ts";
import type { NodePorts } from "../provision/steps.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";
import type { Obtained } from "./obtain-document.ts";
import { checkResolvedSecret, secretFields } from "../config/secrets.ts";
import { nodeFingerprintKey } from "../apply/fingerprint-key.ts";
import { newBaseline } from "../apply/new-baseline.ts";
import { fail } from "../kit/app-error.ts";
import { formatFinding, hasErrors } from "../kit/finding.ts";
import { ok } from "../kit/result.ts";
import { passphraseFile } from "../luks/argv.ts";
import { K0S_JOIN_TOKEN } from "../k0s/paths.ts";
import type { SecretSourceField } from "../provision/driver.ts";
import type { Secret } from "../kit/secret.ts";
import { readFacts, readImageTime, resolveSecrets } from "../provision/driver.ts";
import { probeNetwork } from "../provision/probe/driver.ts";
import { readHidden, readVolumeFacts, readWritten } from "../provision/storage/driver.ts";
import { completeEnv } from "../iso/driver.ts";
import { finishTable } from "../provision/install/table/driver.ts";
import { readMirror } from "../iso/mirror/driver.ts";
import { stateOf } from "../iso/mirror/parse.ts";
import type { BootFacts } from "../kit/paths.ts";
import { planBootstrap } from "../provision/plan.ts";
import { parseDocument } from "../config/load.ts";
import { recordAddresses } from "../provision/addresses.ts";
import { findEarlier } from "../provision/earlier/driver.ts";
import { type Earlier, earlierThan } from "../provision/earlier/plan.ts";
import type { MachineFacts } from "../provision/facts.ts";
import { isTokenOf, JOIN_TOKEN_FROM, noteJoinToken } from "./join-token.ts";
import { HELD, isHeld, obtainDocument, passGate, refusedBy } from "./obtain-document.ts";
import { installFromLive } from "./install.ts";
import { ownLossSinceMs, spendConsent } from "./own-consent.ts";
import { nodeVolumes, remindOfRecovery } from "./volumes.ts";
import {
  beginOperation,
  endFinishedBootstrap,
  concluded,
  failed,
  isSuperseded,
  type Outcome,
  rememberDocument,
  runSteps,
} from "./run-operation.ts";

/** The exit status; a failure was shown on console and API. */
export async function bootstrap(services: BootstrapServices): Promise<number> {
  const isLive = services.boot.mode === "live";
  return concluded(services, await (isLive ? installFromLive(services) : bootstrapFromDisk(services)));
}

async function bootstrapFromDisk(services: BootstrapServices): Promise<Outcome> {
  const { host, paths, reporter, state } = services;
  const marker = await host.files.stat(paths.marker);
  if (!marker.ok) return failed(marker.error);
  if (marker.value !== null) {
    endFinishedBootstrap(state, host.clock.nowMs());
    reporter.say({ state: "done" });
    return { ok: true };
  }
  await healTable(services);
  if (await isHeld(services)) {
    reporter.say({ state: "idle", message: HELD });
    return { ok: true };
  }
  const first = await obtainDocument(services);
  if (!first.ok) return failed(first.error);
  if (first.value === undefined) {
    reporter.say({ state: "idle", message: "waiting to be claimed and given a document" });
    return { ok: true };
  }
  const passed = await passGate(services, first.value);
  if (!passed.ok) return failed(passed.error);
  const operation = await beginOperation(services, "bootstrap");
  if (!operation.ok) return failed(operation.error);
  const provisioned = await provision(services, passed.value, operation.value);
  if (!provisioned.ok) return failed(provisioned.error, operation.value);
  const atMs = host.clock.nowMs();
  state.operations.end(operation.value, { phase: "succeeded" }, atMs);
  state.events.add({ atMs, kind: "in-service", severity: "info", message: "this node is in service" });
  await remindOfRecovery(host, state, nodeVolumes(host, state));
  reporter.say({ state: "done" });
  return { ok: true };
}

async function healTable({ host, boot, state, reporter }: BootstrapServices): Promise<void> {
  for (const partition of await statePartitions(host, boot)) {
    const healed = await finishTable(host, partition, () => completeEnv(host, boot));
    if (!healed.ok) reporter.warn(`the installation could not be completed: ${healed.error.message}`);
    else if (healed.value) {
      const message = "the installation was completed: power was lost in its last act";
      state.events.add({ atMs: host.clock.nowMs(), kind: "install-completed", severity: "info", message });
    }
  }
}

async function statePartitions(host: BootstrapServices["host"], boot: BootFacts): Promise<readonly string[]> {
  if (boot.partUuids === undefined) return [];
  if (boot.isMirrored !== true) return [`/dev/disk/by-partuuid/${boot.partUuids.state}`];
  const mirror = await readMirror(host, boot.installation ?? "");
  return mirror.ok ? mirror.value.disks.filter(({ isInSync }) => isInSync).map(stateOf) : [];
}

async function provision(
  services: BootstrapServices,
  { document, found }: Obtained,
  operation: string,
): Promise<Result<void, AppError>> {
  const { host, state, reporter } = services;
  reporter.say({ state: "running", message: "looking at the machine" });
  const secrets = secretFields(document);
  const planned = await inspectAndPlan(services, document, found.sha256, secrets);
  if (!planned.ok) return planned;
  const { plan, k0sVersion } = planned.value;
  for (const finding of plan.findings) if (finding.severity === "warning") reporter.warn(formatFinding(finding));
  if (hasErrors(plan.findings)) return { ok: false, error: refusedBy(plan.findings) };
  const storedAtMs = rememberDocument(services, found);
  const known = inlineSecrets(secrets);
  const ports = nodePorts(services, document, secrets, known, k0sVersion);
  const owned = [...plan.owned];
  const lossSinceMs = ownLossSinceMs(state);
  const storage = new Set(plan.steps.filter(({ kind }) => /^(disk|raid|luks):/.test(kind)).map(({ id }) => id));
  const done = await runSteps(services, {
    operation,
    steps: plan.steps,
    executors: services.executors(ports),
    secrets: known,
    isSuperseded: (intent) =>
      isSuperseded(intent, storedAtMs) || (lossSinceMs !== undefined && intent.openedAtMs < lossSinceMs),
    onStep: (step, stepState) => {
      if (stepState !== "done" && stepState !== "skipped") return;
      storage.delete(step.id);
      if (step.id === "clock") state.meta.raiseTimeFloor(host.clock.nowMs());
      // Ours from the moment that all of it is there: adopted from now on, whatever wipe says.
      if (storage.size > 0) return;
      for (const each of owned.splice(0)) state.owned.put(each);
      spendConsent(state, host.clock.nowMs());
    },
  });
  if (done.ok && state.meta.get("held") !== undefined) state.meta.remove("held");
  return done;
}

const inlineSecrets = (secrets: readonly SecretField[]): Map<string, Secret> =>
  new Map(secrets.flatMap(({ path, inline }) => (inline === undefined ? [] : [[path, inline] as const])));

export const namedSecrets = (secrets: readonly SecretField[]): readonly NamedSecret[] =>
  secrets.flatMap(({ path, source }) => (source === undefined ? [] : [{ path, source }]));

export async function inspectAndPlan(
  services: Pick<BootstrapServices, "host" | "state" | "paths" | "readInventory">,
  document: Document,
  documentSha256: string,
  secrets: readonly SecretField[],
  more: { readonly isDry?: boolean } = {},
): Promise<Result<{ readonly plan: BootstrapPlan; readonly k0sVersion: string }, AppError>> {
  const { host, state, paths } = services;
  const facts = await readFacts(host);
  if (!facts.ok) return facts;
  const inventory = await services.readInventory();
  if (!inventory.ok) return inventory;
  const lossSinceMs = ownLossSinceMs(state);
  const records = { inventory: inventory.value, owned: state.owned.list(), intents: state.journal.intents() };
  const volumes =
    document.luks.length === 0
      ? undefined
      : await readVolumeFacts(host, document, records, (spec) => passphraseNow(host, spec, secrets, more.isDry));
  if (volumes?.ok === false) return volumes;
  const hasRecord = hasK0sRecord(services);
  const plan = planBootstrap({
    document,
    documentSha256,
    facts: facts.value,
    probes: await probeNetwork(host, document, facts.value, document.join === undefined && !hasRecord),
    ...records,
    replaced: state.replacements.done(),
    ...(volumes === undefined ? {} : { volumes: volumes.value }),
    hidden: await readHidden(host, document),
    written: await readWritten(host),
    earlier: await readEarlier(services, document, facts.value),
    secrets: namedSecrets(secrets),
    hasK0sRecord: hasRecord,
    marker: paths.marker,
    uuid: () => host.random.uuid(),
    ...(lossSinceMs === undefined ? {} : { ownLossSinceMs: lossSinceMs }),
  });
  return ok({ plan, k0sVersion: facts.value.k0sVersion ?? "" });
}

/** Of all documents that this node was given before it was in service: any of them may have come as far as its files. */
async function readEarlier(
  { host, state }: Pick<BootstrapServices, "host" | "state">,
  document: Document,
  facts: MachineFacts,
): Promise<Earlier> {
  const documents = state.documents
    .list()
    .flatMap(({ text, atMs }) => parseDocument(text, { nowMs: atMs }).document ?? []);
  const { hostname, machineId } = facts;
  const addresses = recordAddresses(document, facts);
  return findEarlier(host, earlierThan(documents, { document, hostname, machineId, addresses }));
}

/** What can be had of a passphrase without waiting; a dry run asks nobody. */
async function passphraseNow(
  host: Host,
  { name }: LuksSpec,
  secrets: readonly SecretField[],
  isDry = false,
): Promise<Secret | undefined> {
  const field = secrets.find(
    ({ path }) => path === `luks[${name}].passphrase` || path === `luks[${name}].passphraseFrom`,
  );
  if (field?.source === undefined || isDry) return field?.inline;
  const { waitFor: _, ...source } = field.source;
  const got = await resolveSecrets(host, [{ path: field.path, source }], { report: () => undefined });
  return got.ok ? got.value.get(field.path) : undefined;
}

/** Did an earlier attempt begin with k0s? Each step is recorded before it runs. */
const hasK0sRecord = ({ state }: Pick<BootstrapServices, "state">): boolean =>
  state.operations
    .list()
    .some(
      ({ kind, steps }) =>
        kind === "bootstrap" && steps.some(({ id, startedAtMs }) => id === "k0s:install" && startedAtMs !== undefined),
    );

function nodePorts(
  services: BootstrapServices,
  document: Document,
  documentSecrets: readonly SecretField[],
  secrets: Map<string, Secret>,
  k0sVersion: string,
): NodePorts {
  const { host, state, reporter } = services;
  return {
    clockFloor: async () => ({ imageMs: await readImageTime(host), lastSeenMs: state.meta.timeFloorMs() }),
    warn: (message) => {
      reporter.warn(message);
      state.events.add({ atMs: host.clock.nowMs(), kind: "bootstrap", severity: "warning", message });
    },
    secretSources: new Map(
      namedSecrets(documentSecrets).map((secret) => [secret.path, withFallback(secret, services)]),
    ),
    checkSecret: (path, secret) => {
      const role = document.role === undefined ? {} : { role: document.role };
      const endpoint = document.cluster.endpoint === undefined ? {} : { endpoint: document.cluster.endpoint };
      return checkResolvedSecret(path, secret, { ...role, ...endpoint, nowMs: host.clock.nowMs() });
    },
    noteSecret: (path, secret) => {
      const source = document.join?.tokenFrom;
      if (path === JOIN_TOKEN_FROM && source !== undefined) noteJoinToken(state.meta, host.random, source, secret);
    },
    secrets,
    baseline: {
      isRecorded: (step) => isRecorded(services, step),
      record: (step, rendered) => {
        const stored = state.documents.list().find(({ sha256 }) => sha256 === step.documentSha256);
        if (stored === undefined) return fail("document-gone", "the document is not among those that are kept");
        const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
        const atMs = host.clock.nowMs();
        const { hostname, machineId, addresses } = step;
        const made = { document, stored, secrets, k0sVersion, rendered, atMs, fingerprintKey, isHandedOver: false };
        state.baseline.set(newBaseline({ hostname, machineId, addresses, ...made }));
        return ok(undefined);
      },
    },
    recordMarker: (atMs) => state.meta.set("in-service-at-ms", String(atMs)),
  };
}

/** What the source says now is preferred; but it may give a secret once only. */
function withFallback(
  secret: NamedSecret,
  { state, host }: Pick<BootstrapServices, "state" | "host">,
): SecretSourceField {
  const volume = /^luks\[(.+)\]\.passphraseFrom$/.exec(secret.path)?.[1];
  if (volume !== undefined) return { ...secret, fallbackFile: passphraseFile(volume) };
  if (secret.path !== JOIN_TOKEN_FROM) return secret;
  const isFromSource = (stored: string): boolean => isTokenOf(state.meta, host.random, secret.source, stored);
  return { ...secret, fallbackFile: K0S_JOIN_TOKEN, isFromSource };
}

function isRecorded({ state }: BootstrapServices, step: BaselineStep): boolean {
  const found = state.baseline.get();
  return (
    found?.document.sha256 === step.documentSha256 &&
    found.hostname === step.hostname &&
    found.machineId === step.machineId &&
    found.k0sVersion === step.k0sVersion
  );
}
