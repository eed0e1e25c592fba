/** Document + facts + what we remember → every step of a first boot, in order. Pure; nothing is left to decide. */
import { isIP } from "node:net";
import type { Document, SecretSource } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { Inventory, OwnedStorage, ReplacedDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { StepBase } from "../kit/step.ts";
import type { Intent } from "../state/model.ts";
import type { K0sStep } from "../k0s/model.ts";
import type { MachineFacts } from "./facts.ts";
import type { Probes } from "./lint.ts";
import type { NodeStep } from "./model.ts";
import type { WrittenMount } from "./mount-plan.ts";
import type { RenderedNode } from "./render.ts";
import type { VolumeFacts } from "./storage-part.ts";
import type { StorageStep } from "./storage.ts";
import type { WireguardStep } from "../wireguard/model.ts";
import { readJoinToken } from "../config/token.ts";
import { planK0s } from "../k0s/plan.ts";
import { renderK0s } from "../k0s/render.ts";
import { hasErrors } from "../kit/finding.ts";
import { planWireguard } from "../wireguard/plan.ts";
import { recordAddresses } from "./addresses.ts";
import { type Earlier, planEarlier } from "./earlier/plan.ts";
import { lintInstalled } from "./installed-lint.ts";
import { lintBootstrap } from "./lint.ts";
import { renderNode } from "./render.ts";
import { isBehindOverlay } from "./secrets.ts";
import { planStorage } from "./storage.ts";
import { renderTimers } from "./timers.ts";

export type ProvisionStep = NodeStep | StorageStep | WireguardStep | K0sStep;

/** A secret that the document names but does not hold. */
export interface NamedSecret {
  readonly path: string;
  readonly source: SecretSource;
}

export interface BootstrapInput {
  readonly document: Document;
  readonly documentSha256: string;
  readonly facts: MachineFacts;
  readonly probes: Probes;
  readonly inventory: Inventory;
  readonly owned: readonly OwnedStorage[];
  readonly replaced?: readonly ReplacedDisk[];
  readonly intents: readonly Intent[];
  readonly secrets: readonly NamedSecret[];
  /** An earlier attempt of ours got as far as k0s. */
  readonly hasK0sRecord: boolean;
  readonly marker: string;
  /** Where the document has encrypted volumes. */
  readonly volumes?: VolumeFacts;
  /** Mount units that documents of this node made. */
  readonly written?: readonly WrittenMount[];
  /** What earlier documents of this first boot had written and this one does not want, as far as it is there. */
  readonly earlier?: Earlier;
  /** What lies at mount points of the document while nothing is mounted there. */
  readonly hidden?: ReadonlyMap<string, readonly string[]>;
  readonly uuid: () => string;
  /** `--wipe-own`: what was ours before then may be lost where the document says `wipe`. */
  readonly ownLossSinceMs?: number;
}

export interface BootstrapPlan {
  /** Empty when there is an error among the findings. */
  readonly steps: readonly ProvisionStep[];
  readonly findings: readonly Finding[];
  readonly rendered: RenderedNode;
  readonly addresses: RecordedAddresses;
  /** To be recorded once the storage steps ran. */
  readonly owned: readonly OwnedStorage[];
}

export function planBootstrap(input: BootstrapInput): BootstrapPlan {
  const { document, facts, probes, hasK0sRecord } = input;
  const addresses = recordAddresses(document, facts);
  const rendered = renderNode({ document, addresses, hostname: facts.hostname, machineId: facts.machineId });
  const storage = planStorage(input);
  const overlays = planWireguard(document);
  const earlier = planEarlier(input.earlier ?? { files: [], volumes: [] }, hasK0sRecord);
  const findings = [
    ...lintRole(document),
    ...lintLateSecrets(input),
    ...lintBootstrap({ document, facts, probes, hasK0sRecord }),
    ...lintInstalled(document, input.inventory),
    ...storage.findings,
    ...overlays.findings,
    ...earlier.findings,
    ...rendered.findings,
  ];
  const base = { findings, rendered, addresses, owned: storage.owned };
  if (hasErrors(findings)) return { ...base, steps: [], owned: [] };
  const [direct, behindOverlay] = splitSecrets(input);
  const join = joinSteps(input, rendered.hostname, addresses);
  const isLate = isJoinedThroughOverlay(input);
  const steps: readonly ProvisionStep[] = [
    { kind: "node:clock", id: "clock", title: "make sure of the time" },
    ...secretsStep("secrets", direct, ""),
    ...(isLate ? [] : join),
    { kind: "node:hostname", id: "hostname", title: `name the node ${rendered.hostname}`, hostname: rendered.hostname },
    ...storage.steps,
    ...earlier.steps,
    ...overlays.steps,
    ...secretsStep("secrets:overlay", behindOverlay, " through the overlay"),
    ...(isLate ? join : []),
    ...planK0s(document, renderK0s({ document, addresses })),
    ...lastSteps(input, rendered, addresses),
  ];
  return { ...base, steps };
}

function lintRole(document: Document): Finding[] {
  if (document.role !== undefined) return [];
  return [
    {
      severity: "error",
      code: "missing",
      path: "role",
      message: "the node has no role yet",
      hint: "give it a document with one",
    },
  ];
}

/** Volumes are opened before the overlay is up, so that what lies behind it is out of their reach. */
function lintLateSecrets({ document, secrets, probes }: BootstrapInput): Finding[] {
  return secrets
    .filter(({ path, source }) => path.startsWith("luks") && source.url !== undefined)
    .filter(({ source }) => isBehindOverlay(source.url ?? "", document, probes.secretServers))
    .map(({ path }) => ({
      severity: "error",
      code: "secret-too-late",
      path,
      message: "its source is only reached through the overlay, which comes up after the volumes",
      hint: "keep it where the node reaches it without the overlay",
    }));
}

/** Those that can only be reached once the tunnel is up wait for it; the tunnel's own never do. */
function splitSecrets({
  document,
  secrets,
  probes,
}: BootstrapInput): readonly [readonly NamedSecret[], readonly NamedSecret[]] {
  const isLater = ({ path, source }: NamedSecret): boolean =>
    source.url !== undefined &&
    !path.startsWith("wireguard") &&
    isBehindOverlay(source.url, document, probes.secretServers);
  return [secrets.filter((secret) => !isLater(secret)), secrets.filter(isLater)];
}

function secretsStep(id: string, secrets: readonly NamedSecret[], how: string): readonly NodeStep[] {
  if (secrets.length === 0) return [];
  const fields = secrets.map(({ path }) => path);
  return [{ kind: "node:secrets", id, title: `get ${fields.join(", ")}${how}`, fields }];
}

/** Not once k0s began here: then the name that the cluster knows may be this node's. */
function joinSteps(
  { document, facts, hasK0sRecord }: BootstrapInput,
  hostname: string,
  { peerAddress }: RecordedAddresses,
): readonly NodeStep[] {
  if (document.join === undefined || hasK0sRecord) return [];
  const { machineId, systemUuid } = facts;
  const node = hostname.toLowerCase();
  return [
    {
      kind: "node:join",
      id: "join",
      title: `make sure the name ${node} is free in the cluster`,
      tokenField: document.join.token === undefined ? "join.tokenFrom" : "join.token",
      joining: {
        node,
        machineId,
        ...(systemUuid === undefined ? {} : { systemUuid }),
        ...(peerAddress === undefined ? {} : { peerAddress }),
      },
    },
  ];
}

/** Where it can't be told that the cluster is reached without the tunnel, it is asked once the tunnel is there. */
function isJoinedThroughOverlay({ document }: BootstrapInput): boolean {
  if (document.wireguard.length === 0) return false;
  const server = document.join?.token === undefined ? undefined : readJoinToken(document.join.token)?.server;
  return server === undefined || !isIpUrl(server) || isBehindOverlay(server, document);
}

const isIpUrl = (url: string): boolean => isIP(new URL(url).hostname.replace(/^\[|\]$/g, "")) !== 0;

function lastSteps(input: BootstrapInput, rendered: RenderedNode, addresses: RecordedAddresses): readonly NodeStep[] {
  const timers = renderTimers(input.document);
  return [
    { kind: "node:timers", id: "timers", title: "set the timers", ...timers },
    {
      kind: "node:baseline",
      id: "baseline",
      title: "record what the node runs",
      documentSha256: input.documentSha256,
      hostname: rendered.hostname,
      machineId: input.facts.machineId,
      addresses,
      k0sVersion: input.facts.k0sVersion ?? "",
      rendered: rendered.files.map((file) => file.path),
    },
    { kind: "node:marker", id: "marker", title: "enter service", path: input.marker },
  ];
}

/** `id: title`, then each program below it. */
export function describePlan<S extends StepBase>(
  steps: readonly S[],
  argvOf: (step: S) => readonly (readonly string[])[],
): string {
  return steps
    .flatMap((step) => [
      `${step.id}: ${step.title}`,
      ...argvOf(step).map((argv) => `    ${argv.map(quoted).join(" ")}`),
    ])
    .map((line) => `${line}\n`)
    .join("");
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
