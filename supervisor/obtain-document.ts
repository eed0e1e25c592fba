/**
 * The document that this node acts on: searched for, validated, and held back by the gate. Waiting changes nothing
 * on the machine and is said on every console.
 */
import type { Document } from "../config/document.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import type { BootstrapServices, FoundDocument } from "./bootstrap-services.ts";
import { CLOUD_INIT_MERGED } from "../config/driver.ts";
import { parseDocument } from "../config/load.ts";
import { listedK0sVersions } from "../iso/k0s-lock.ts";
import { appError, fail } from "../kit/app-error.ts";
import { formatFinding } from "../kit/finding.ts";
import { err, ok } from "../kit/result.ts";
import { checkAuthority } from "../pki/authority.ts";
import { resolveSecrets } from "../provision/driver.ts";
import { isReKeyed } from "./re-key.ts";

export interface Obtained {
  readonly document: Document;
  readonly found: FoundDocument;
}

const pollMs = 1_000;
const retryMs = 10_000;

export const HELD = "waiting for a claim together with a document: this node was reset";

/** After a reset sources 2 to 4 are not even looked at: they made the node that was given up. */
export async function isHeld({
  host,
  state,
  paths,
}: Pick<BootstrapServices, "host" | "state" | "paths">): Promise<boolean> {
  if (state.meta.get("held") === undefined) return false;
  const given = await host.files.stat(paths.config);
  return given.ok && given.value === null;
}

/** `undefined`: there is none, or none that may be acted on. */
export async function obtainDocument(services: BootstrapServices): Promise<Result<Obtained | undefined, AppError>> {
  const { host, reporter, signal } = services;
  for (;;) {
    const source = await services.findDocument();
    if (source.kind === "none") return ok(undefined);
    if (source.kind === "found") return readDocument(services, source);
    if (!source.retryable) return err(source.error);
    reporter.say({ state: "waiting", message: `waiting for the document: ${chainOf(source.error)}` });
    await host.clock.sleep(retryMs, signal);
    if (signal?.aborted === true) return fail("stopped", "stopped while waiting for the document");
  }
}

export function readDocument(
  services: Pick<BootstrapServices, "host" | "reporter">,
  found: FoundDocument,
): Result<Obtained, AppError> {
  const { findings, document } = parseDocument(found.text, {
    file: found.origin,
    nowMs: services.host.clock.nowMs(),
    k0sVersions: listedK0sVersions,
  });
  for (const note of found.notes) services.reporter.warn(note);
  const isCarriedOut = found.origin === CLOUD_INIT_MERGED;
  for (const finding of findings) {
    if (finding.severity !== "warning" || (finding.code === "foreign-keys" && isCarriedOut)) continue;
    services.reporter.warn(formatFinding(finding));
  }
  if (document !== undefined) return ok({ document, found });
  const problems = findings.filter((finding) => finding.severity === "error");
  return fail("invalid-document", `the document from ${found.origin} is refused, nothing was changed`, {
    details: problems.flatMap((finding) => formatFinding(finding).split("\n")),
    hint: "correct it, then 'cctl apply' it or start the node again",
  });
}

/**
 * Holds until nothing stands against provisioning. The answer may be there before the wait begins, and may come from
 * the API at any time; then everything is read again, and an unreadable one is an error, never a fall-back.
 */
export async function passGate(services: BootstrapServices, first: Obtained): Promise<Result<Obtained, AppError>> {
  const { host, paths, reporter, signal } = services;
  let current = first;
  const seenText = async (): Promise<string> => {
    const text = await host.files.readText(paths.config, { maxBytes: 2_097_152 });
    return text.ok ? text.value : "";
  };
  let seen = await seenText();
  let hasWaited = false;
  for (;;) {
    const claimed = await claimByDocument(services, current.document);
    if (!claimed.ok) return claimed;
    const obstacle = obstacleOf(services, current);
    if (obstacle === undefined) return hasWaited ? obtainAgain(services, current) : ok(current);
    hasWaited = true;
    reporter.say({ state: "waiting", message: obstacle });
    await host.clock.sleep(pollMs, signal);
    if (signal?.aborted === true) return fail("stopped", "stopped while waiting for claim or document");
    const now = await seenText();
    if (now === seen) continue;
    seen = now;
    const next = await obtainAgain(services, current);
    if (!next.ok) return next;
    current = next.value;
  }
}

/** The claim may have brought another document. */
async function obtainAgain(services: BootstrapServices, current: Obtained): Promise<Result<Obtained, AppError>> {
  const again = await obtainDocument(services);
  if (!again.ok) return again;
  if (again.value === undefined) return fail("document-gone", `the document from ${current.found.origin} is gone`);
  // Another one may have its own obstacle; the same one has passed.
  if (again.value.found.sha256 === current.found.sha256) return ok(again.value);
  return obstacleOf(services, again.value) === undefined ? ok(again.value) : passGate(services, again.value);
}

/** What keeps this document from being acted on, as a message; undefined when nothing does. */
export function obstacleOf(
  services: Pick<BootstrapServices, "state" | "paths">,
  { document, found }: Obtained,
): string | undefined {
  const { state, paths } = services;
  const isClaimed = state.claim.get() !== undefined;
  const isFromApi = state.documents
    .list()
    .some(({ sha256, requester }) => sha256 === found.sha256 && requester.kind !== "document");
  if (state.meta.get("held") !== undefined && !(isClaimed && found.origin.includes(paths.config))) return HELD;
  const { api } = document;
  const isMaintenance = api?.enabled === true && api.operatorCA === undefined && api.operatorCAFrom === undefined;
  if (isMaintenance && !isClaimed) return "waiting to be claimed";
  if (document.role === undefined) return "waiting for a document with a role";
  if (api?.awaitConfig === true && !isFromApi) return "waiting for a document through the API";
  return undefined;
}

/** An operator CA in the document claims the node, once; a claim that is there already is never replaced. */
async function claimByDocument(services: BootstrapServices, document: Document): Promise<Result<void, AppError>> {
  const { host, state, reporter } = services;
  // Nor does its own document claim a node that was reset: that takes somebody with the code.
  const isHeldBack = state.meta.get("held") !== undefined;
  if (state.claim.get() !== undefined || isReKeyed(state) || isHeldBack) return ok(undefined);
  let pem = document.api?.operatorCA;
  const source = document.api?.operatorCAFrom;
  if (pem === undefined && source !== undefined) {
    const report = (message: string): void => reporter.say({ state: "waiting", message });
    const field = { path: "api.operatorCAFrom", source };
    const got = await resolveSecrets(host, [field], { report, ...(services.signal && { signal: services.signal }) });
    if (!got.ok) return got;
    pem = got.value.get(field.path)?.reveal();
  }
  if (pem === undefined) return ok(undefined);
  const atMs = host.clock.nowMs();
  const authority = checkAuthority(pem, atMs);
  if (!authority.ok) return authority;
  const { fingerprint } = authority.value;
  const recorded = state.claim.record({ operatorCA: pem, fingerprint, atMs, by: "document" });
  // Lost a race against an enrolment: then somebody owns the node, which is all that is asked here.
  if (!recorded.ok) return ok(undefined);
  state.events.add({
    atMs,
    kind: "claimed",
    severity: "info",
    message: `claimed by the document: operator CA ${fingerprint}`,
  });
  return ok(undefined);
}

function chainOf(error: AppError): string {
  return error.cause === undefined ? error.message : `${error.message}: ${chainOf(error.cause)}`;
}

/** Findings of planning as one error, all at once. */
export const refusedBy = (findings: readonly Parameters<typeof formatFinding>[0][]): AppError =>
  appError("refused", "this machine can't be made what the document says, nothing was changed", {
    details: findings
      .filter((finding) => finding.severity === "error")
      .flatMap((finding) => formatFinding(finding).split("\n")),
    hint: "correct the document or the machine, then 'cctl retry'",
  });
