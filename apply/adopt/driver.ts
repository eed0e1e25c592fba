/**
 * The record of what a node runs was lost: a document that is named is checked against what is rendered on the node, and
 * becomes the record when nothing differs. No file but source 1 is written, and nothing restarts.
 */
import type { AdoptAnswer, ConfigReason, ErrorBody } from "../../api/contract.ts";
import { parse } from "yaml";
import type { Document } from "../../config/document.ts";
import { ANY_TIME } from "../../config/load.ts";
import { inlineSecrets } from "../../config/secrets.ts";
import { addressesToRecord } from "../../k0s/addresses.ts";
import { unitOf } from "../../k0s/argv.ts";
import { fillSecrets } from "../../k0s/fill.ts";
import { valueAt } from "../../k0s/merge.ts";
import { parseUnit } from "../../k0s/parse.ts";
import { K0S_CONFIG, unitFile } from "../../k0s/paths.ts";
import { readVersion } from "../../k0s/service/driver.ts";
import { isSameCommand } from "../../k0s/unit.ts";
import { type AppError, fail, formatError } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import { ok, type Result } from "../../kit/result.ts";
import { Secret } from "../../kit/secret.ts";
import type { Baseline, Requester } from "../../state/model.ts";
import { findHandEdits, keepHandEdits } from "../by-hand/driver.ts";
import { withStoredSecrets, writeSource } from "../driver.ts";
import { type ExpectedNode, expectedNode } from "../expected.ts";
import { nodeFingerprintKey } from "../fingerprint-key.ts";
import { handEditDiff } from "../hand-edit.ts";
import { secretFingerprints } from "../input-hash.ts";
import { newBaseline } from "../new-baseline.ts";
import type { NodeFacts } from "../plan.ts";
import { type ApplyDependencies, busy } from "../service/model.ts";
import { recordTogether } from "../transaction.ts";
import { sha256Of } from "../../kit/sha256.ts";

export interface AdoptRequest {
  readonly document: string;
  readonly isDryRun: boolean;
  readonly requester: Requester;
}

export type AdoptOutcome =
  | { readonly kind: "answer"; readonly answer: AdoptAnswer }
  | { readonly kind: "refused"; readonly status: 400 | 409 | 503; readonly body: ErrorBody };

const refused = (
  status: 400 | 409 | 503,
  reason: string,
  error: string,
  more: Partial<ErrorBody> = {},
): AdoptOutcome => ({ kind: "refused", status, body: { error, reason, ...more } });

export async function adoptBaseline(dependencies: ApplyDependencies, request: AdoptRequest): Promise<AdoptOutcome> {
  const { host, state } = dependencies;
  const atMs = host.clock.nowMs();
  // It is asked for to be recorded as what runs, whatever has ended since.
  const { findings, document } = dependencies.parse(request.document, ANY_TIME);
  if (document === undefined) {
    return refused(400, "invalid-document", "the document is not valid, and nothing was recorded; see problems", {
      problems: findings,
    });
  }
  if (document.role === undefined)
    return refused(
      409,
      "differs",
      "role: the document gives the node none, so it is not what it runs; name the document that was applied last",
    );
  // No file is rendered of it, so that nothing below would differ.
  if (request.requester.kind === "operator" && document.api?.enabled === false)
    return refused(
      409,
      "closes-api",
      "api.enabled: that document turns off the API that you ask through, and whoever lost the record would be locked out; name the document that was applied last, or adopt this one on the node's console",
    );
  const found = await compare(dependencies, document);
  if (!found.ok) return refused(503, found.error.code, `the node could not be compared: ${formatError(found.error)}`);
  const { differences } = found.value;
  if (differences.length > 0) {
    const names = differences.map(({ path, message }) => path ?? message).join(", ");
    const error = `this node does not run that document; what it would render differs in ${names}; name the document that was applied last`;
    return refused(409, "differs", error, { differences });
  }
  if (request.isDryRun) return { kind: "answer", answer: { status: "planned", warnings: findings } };
  const { requester } = request;
  const begun = state.operations.begin({ kind: "baseline-adopt", requester, version: dependencies.version, atMs });
  if (!begun.ok) {
    const { running } = begun.error;
    return busy(running);
  }
  const operation = begun.value.id;
  const recorded = await record(dependencies, request, { ...found.value, document });
  if (!recorded.ok) {
    const failureReason = formatError(recorded.error);
    state.operations.end(operation, { phase: "failed", failureReason }, host.clock.nowMs());
    return refused(503, recorded.error.code, `nothing was recorded: ${failureReason}`, { operation });
  }
  state.operations.end(operation, { phase: "succeeded" }, host.clock.nowMs());
  const message = "what this node runs is recorded again: the document that was named matches its files";
  state.events.add({ atMs, kind: "baseline-adopted", severity: "warning", message });
  return { kind: "answer", answer: { status: "adopted", operation, warnings: findings } };
}

interface Compared {
  readonly differences: readonly ConfigReason[];
  readonly node: NodeFacts;
  readonly k0sVersion: string;
  readonly rendered: Baseline["rendered"];
  readonly secrets: ReadonlyMap<string, Secret>;
}

/** By the addresses that the node was made with, as its files have them: of the candidates the one that fits best. */
async function compare(dependencies: ApplyDependencies, document: Document): Promise<Result<Compared, AppError>> {
  const { host } = dependencies;
  const version = await readVersion(host);
  if (!version.ok) return version;
  const hostname = await host.files.readText("/proc/sys/kernel/hostname");
  const machineId = await host.files.readText("/etc/machine-id");
  if (!hostname.ok) return hostname;
  if (!machineId.ok) return machineId;
  const stored = await withStoredSecrets(host, inlineSecrets(document));
  if (!stored.ok) return stored;
  let best: Compared | undefined;
  for (const own of await ownAddresses(host, document)) {
    const node = {
      hostname: hostname.value.trim(),
      machineId: machineId.value.trim(),
      addresses: addressesToRecord(document, own),
    };
    const found = await compareWith(dependencies, document, node, stored.value);
    const compared = { ...found, node, k0sVersion: version.value };
    if (best === undefined || compared.differences.length < best.differences.length) best = compared;
  }
  return best === undefined ? fail("adopt", "nothing to compare with") : ok(best);
}

/** None first: where k0s chose by itself nothing is in its files. */
async function ownAddresses(host: Host, document: Document): Promise<readonly (string | undefined)[]> {
  const config = await host.files.readText(K0S_CONFIG);
  const unit = await host.files.readText(unitFile(unitOf(document)));
  const found: unknown[] = [];
  if (config.ok) {
    const read = readYaml(config.value);
    const instances = valueAt(read, ["spec", "network", "controlPlaneLoadBalancing", "keepalived", "vrrpInstances"]);
    found.push(valueAt(read, ["spec", "api", "address"]), valueAt(read, ["spec", "storage", "etcd", "peerAddress"]));
    if (Array.isArray(instances)) found.push(valueAt(instances[0], ["unicastSourceIP"]));
  }
  const command = unit.ok ? parseUnit(unit.value) : undefined;
  const extra = command?.ok === true ? command.value.flags.get("kubelet-extra-args") : undefined;
  found.push(/--node-ip=(\S+)/.exec(extra ?? "")?.[1]);
  return [undefined, ...new Set(found.filter((each) => typeof each === "string"))];
}

function readYaml(text: string): unknown {
  try {
    return parse(text, { uniqueKeys: false });
  } catch {
    return undefined;
  }
}

async function compareWith(
  { host, state }: ApplyDependencies,
  document: Document,
  node: NodeFacts,
  stored: ReadonlyMap<string, Secret>,
): Promise<Pick<Compared, "differences" | "rendered" | "secrets">> {
  const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
  const handedOver = state.handover.done()?.stack;
  const expected = expectedNode({ document, node, owned: state.owned.list(), handedOver });
  const secrets = new Map(stored);
  const differences: ConfigReason[] = [];
  const rendered: Record<string, string> = {};
  for (const file of expected.files.values()) {
    const { path } = file;
    const found = await host.files.readText(path);
    if (!found.ok) {
      differences.push({ code: "file-missing", message: `${path} is not there, or can't be read`, path });
      continue;
    }
    rendered[path] = sha256Of(found.value);
    const field = /^<secret:([^>]+)>\n?$/.exec(file.content)?.[1];
    // The whole file is a secret that may only be known to its source: as far as the document has it, it must be that.
    const known = field === undefined ? undefined : stored.get(field)?.reveal().trim();
    if (field !== undefined) secrets.set(field, new Secret(field, found.value.trim()));
    if (field !== undefined && (known === undefined || known === found.value.trim())) continue;
    const filled = fillSecrets(file, secrets);
    if (filled.ok && filled.value.content === found.value) continue;
    const prints = secretFingerprints(secrets, fingerprintKey);
    const diff = handEditDiff({ expected: file, found: found.value, secretFingerprints: prints, fingerprintKey });
    const message = `${path} differs from what that document renders`;
    differences.push({ code: "file-changed", message, path, ...(diff === undefined ? {} : { diff }) });
  }
  return { differences: [...differences, ...(await unitDifference(host, document, expected))], rendered, secrets };
}

async function unitDifference(host: Host, document: Document, { k0s }: ExpectedNode): Promise<readonly ConfigReason[]> {
  const path = unitFile(unitOf(document));
  const text = await host.files.readText(path);
  const command = text.ok ? parseUnit(text.value) : undefined;
  if (k0s !== undefined && command?.ok === true && isSameCommand(command.value, k0s)) return [];
  const message = `${path} does not start k0s as that document has it (role, labels, taints, address, token)`;
  return [{ code: "unit-changed", message, path }];
}

async function record(
  { host, state, paths }: ApplyDependencies,
  request: AdoptRequest,
  { document, node, k0sVersion, rendered, secrets }: Compared & { readonly document: Document },
): Promise<Result<void, AppError>> {
  const source = [{ path: paths.config, recorded: undefined, content: request.document }];
  const kept = await keepHandEdits(host, paths.stateDir, await findHandEdits(host, paths.stateDir, source));
  if (!kept.ok) return kept;
  const written = await writeSource(host, paths.config, request.document);
  if (!written.ok) return written;
  const atMs = host.clock.nowMs();
  const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
  const isHandedOver = state.handover.done() !== undefined;
  const { requester, document: text } = request;
  return recordTogether(state, () => {
    const stored = state.documents.add({ text, atMs, requester, origin: "apply" });
    const made = { document, stored, secrets, k0sVersion, rendered, atMs, fingerprintKey, isHandedOver };
    state.baseline.set(newBaseline({ ...node, ...made }));
    if (state.meta.get("in-service-at-ms") === undefined) state.meta.set("in-service-at-ms", String(atMs));
  });
}
