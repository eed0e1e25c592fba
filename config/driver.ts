/** Looks for the node's document, most specific source first. Reads files and one URL, changes nothing. */
import { createHash } from "node:crypto";
import type { AppError } from "../kit/app-error.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { appError, fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import { argumentValue, parseCmdline, unknownArguments } from "./cmdline.ts";
import { parseDocument } from "./load.ts";
import { redactPlain } from "./redact.ts";

export interface SourceContext {
  readonly paths: Paths;
  readonly boot?: BootFacts;
  /** /proc/cmdline. */
  readonly cmdline: string;
  /** Where seed media (labelled CORIUM or CIDATA) are mounted, beside the medium of the live system. */
  readonly seedFolders?: readonly string[];
}

/** `notes` are for the log: sources that were looked at and are no answer, unknown arguments. */
export type Source = { readonly notes: readonly string[] } & (
  | { readonly kind: "none" }
  | {
      readonly kind: "found";
      readonly text: string;
      /** `/etc/corium/config.yaml`, `corium.config=https://…`: without query and password. */
      readonly origin: string;
      readonly sha256: string;
      /** Fixed by corium.config.sha256: nothing may overrule it. */
      readonly pinned: boolean;
    }
  /** `retryable`: the network or the server may be there later. */
  | { readonly kind: "failed"; readonly error: AppError; readonly retryable: boolean }
);

/** `null`: absent. */
type Read = Result<Uint8Array | null, AppError & { readonly retryable?: boolean }>;

interface Candidate {
  readonly origin: string;
  /** A file made for Corium, which must hold a document; a seed may be for others. */
  readonly isOurs: boolean;
  read(): Promise<Read>;
}

const MAX_BYTES = 1024 * 1024;

/**
 * The first source that holds a corium document. Any failure but absence stops the search: an intent that cannot be
 * reached must not fall through to a default.
 */
export async function findDocument(host: Host, context: SourceContext): Promise<Source> {
  const { paths, boot, cmdline } = context;
  const list = parseCmdline(cmdline);
  const notes: string[] = [...unknownArguments(list)];
  const value = argumentValue(list, "corium.config");
  const pin = argumentValue(list, "corium.config.sha256")?.toLowerCase();
  const wrong = argumentProblem(value, pin);
  if (wrong !== undefined) return { kind: "failed", error: wrong, retryable: false, notes };
  const folders = [...(boot?.medium === undefined ? [] : [boot.medium.mountPoint]), ...(context.seedFolders ?? [])];
  const argument: Candidate | undefined =
    value === undefined || value === ""
      ? undefined
      : {
          origin: `corium.config=${shown(value)}`,
          isOurs: true,
          read: () => readArgument(host, value, argumentValue(list, "corium.config.ca"), pin !== undefined, boot),
        };
  const before: readonly Candidate[] = [
    fileCandidate(host, paths.config, true),
    ...folders.flatMap((folder) => [
      fileCandidate(host, `${folder}/config.yaml`, true),
      fileCandidate(host, `${folder}/user-data`, false),
    ]),
  ];
  if (argument !== undefined && pin !== undefined) return findPinned(argument, pin, before, notes);
  await noteUnusedFiles(host, folders, notes);
  const wished = [...before, ...(argument === undefined ? [] : [argument])];
  for (const [at, candidate] of wished.entries()) {
    const found = await tryCandidate(candidate, notes);
    if (found.kind === "found") await noteShadowed(found, wished.slice(at + 1), argument, notes);
    if (found.kind !== "none") return found;
  }
  return tryCandidate(fileCandidate(host, paths.bakedConfig, true), notes);
}

/** A stick that was left in, an argument that was left over: not obeyed, and said. A server is not asked for it. */
async function noteShadowed(
  found: Source & { readonly kind: "found" },
  others: readonly Candidate[],
  argument: Candidate | undefined,
  notes: string[],
): Promise<void> {
  for (const other of others) {
    const shadowed = other === argument ? undefined : await tryCandidate(other, []);
    if (shadowed !== undefined && (shadowed.kind !== "found" || shadowed.sha256 === found.sha256)) continue;
    notes.push(`${other.origin} is not used: ${found.origin} comes first`);
  }
}

/** The parts of a NoCloud seed that only cloud-init would carry out. */
async function noteUnusedFiles(host: Host, folders: readonly string[], notes: string[]): Promise<void> {
  for (const path of folders.flatMap((folder) => [`${folder}/network-config`, `${folder}/vendor-data`])) {
    const file = await host.files.stat(path);
    if (!file.ok || file.value === null) continue;
    const instead = path.endsWith("network-config") ? "; addresses are given with ip= on the kernel command line" : "";
    notes.push(`${path} is not used: there is no cloud-init here${instead}`);
  }
}

function argumentProblem(value: string | undefined, pin: string | undefined): AppError | undefined {
  if (pin !== undefined && !/^[0-9a-f]{64}$/.test(pin)) {
    return appError("argument", "corium.config.sha256 is not 64 hexadecimal digits");
  }
  if (value === undefined || value === "") {
    return pin === undefined ? undefined : appError("argument", "corium.config.sha256 is given without corium.config");
  }
  if (value.startsWith("http://") && pin === undefined) {
    return appError("argument", `corium.config=${shown(value)} is plain http`, {
      hint: "use https, or pin the content with corium.config.sha256=",
    });
  }
  if (/^(?:https?:\/\/[^/]|medium:\/.|\/.)/.test(value)) return undefined;
  return appError("argument", `corium.config=${shown(value)} is neither an absolute path nor an https URL`, {
    hint: "e.g. corium.config=/corium/node-1.yaml or corium.config=https://seed.example.net/node-1.yaml",
  });
}

/** Pinned content is the answer, and whatever says otherwise is refused rather than obeyed or ignored. */
async function findPinned(
  argument: Candidate,
  pin: string,
  others: readonly Candidate[],
  notes: string[],
): Promise<Source> {
  const read = await argument.read();
  if (!read.ok) return failure(argument, read.error, notes);
  const sha256 = createHash("sha256")
    .update(read.value ?? new Uint8Array())
    .digest("hex");
  if (sha256 !== pin) {
    const error = appError("sha256", `${argument.origin} is not the document that corium.config.sha256 pins`, {
      details: [`wanted ${pin}`, `got ${sha256}`],
      hint: "the file was changed, or the argument is out of date",
    });
    return { kind: "failed", error, retryable: false, notes };
  }
  for (const other of others) {
    const found = await tryCandidate(other, notes);
    if (found.kind === "failed") return found;
    if (found.kind === "none" || found.sha256 === pin) continue;
    const error = appError("conflict", `${argument.origin} is pinned, but ${found.origin} says otherwise`, {
      hint: `take ${found.origin} away, or the kernel arguments`,
    });
    return { kind: "failed", error, retryable: false, notes };
  }
  const found = await tryCandidate({ ...argument, read: () => Promise.resolve(read) }, notes);
  if (found.kind !== "found") return found;
  const pinned: Source = { ...found, pinned: true };
  return argument.origin.startsWith("corium.config=http://") ? warnClearText(pinned, notes) : pinned;
}

/** Over plain http everyone on the provisioning network reads along. */
function warnClearText(found: Source & { readonly kind: "found" }, notes: string[]): Source {
  const secrets: string[] = [];
  const note = (path: string): string => (secrets.push(path), "");
  redactPlain(parseDocument(found.text, { nowMs: 0 }).raw, { mark: note });
  if (secrets.length > 0) notes.push(`${found.origin} came over plain http and holds secrets: ${secrets.join(", ")}`);
  return found;
}

async function tryCandidate(candidate: Candidate, notes: string[]): Promise<Source> {
  const read = await candidate.read();
  if (!read.ok) return failure(candidate, read.error, notes);
  if (read.value === null) return { kind: "none", notes };
  const text = decodeText(read.value);
  if (text === undefined) {
    if (!candidate.isOurs) return noAnswer(candidate, "it is not text", notes);
    return failure(candidate, appError("not-utf8", "it is not UTF-8 text"), notes);
  }
  if (text.trim() === "") return noAnswer(candidate, "it is empty", notes);
  const { findings } = parseDocument(text, { nowMs: 0 });
  const nothing = findings.find(({ code }) => code === "no-configuration");
  if (nothing !== undefined) {
    // A cloud-config of others, and a template of nothing but comments, mask nothing.
    const isForOthers = !candidate.isOurs || text.startsWith("#cloud-config") || isOnlyComments(text);
    if (isForOthers) return noAnswer(candidate, nothing.message, notes);
    const hint = nothing.hint === undefined ? {} : { hint: nothing.hint };
    return failure(candidate, appError("no-configuration", nothing.message, hint), notes);
  }
  const isScript = !candidate.isOurs && !/^corium:/m.test(text) && findings.some(({ code }) => code === "not-yaml");
  if (isScript) return noAnswer(candidate, "it is not YAML", notes);
  const sha256 = createHash("sha256").update(read.value).digest("hex");
  return { kind: "found", text, origin: candidate.origin, sha256, pinned: false, notes };
}

const isOnlyComments = (text: string): boolean => text.split("\n").every((line) => /^\s*(?:#.*)?$/.test(line));

function noAnswer(candidate: Candidate, why: string, notes: string[]): Source & { readonly kind: "none" } {
  notes.push(`${candidate.origin} is no answer: ${why}`);
  return { kind: "none", notes };
}

function failure(
  { origin }: Candidate,
  cause: AppError & { readonly retryable?: boolean },
  notes: readonly string[],
): Source & { readonly kind: "failed" } {
  const error = appError("source", `the configuration source ${origin} failed`, { cause });
  return { kind: "failed", error, retryable: cause.retryable === true, notes };
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function fileCandidate(host: Host, path: string, isOurs: boolean): Candidate {
  return { origin: path, isOurs, read: () => readFile(host, path) };
}

async function readFile(host: Host, path: string): Promise<Read> {
  const read = await host.files.read(path, { maxBytes: MAX_BYTES });
  if (read.ok) return read;
  return read.error.code === "ENOENT" || read.error.code === "ENOTDIR" ? ok(null) : read;
}

async function readArgument(
  host: Host,
  value: string,
  authority: string | undefined,
  isPinned: boolean,
  boot: BootFacts | undefined,
): Promise<Read> {
  if (!/^https?:/.test(value)) return readNamed(host, value, boot);
  const trust = authority === undefined ? undefined : await readNamed(host, authority, boot);
  if (trust !== undefined && !trust.ok) return trust;
  const pem = trust?.value === undefined || trust.value === null ? {} : { trust: decodeText(trust.value) ?? "" };
  const request = { url: value, timeoutMs: 30_000, maxBytes: MAX_BYTES, isPinned, ...pem };
  const answer = await host.http(request);
  if (!answer.ok) {
    const retryable = ["dns", "refused", "timeout", "protocol", "tls-not-yet-valid"].includes(answer.error.code);
    return { ok: false, error: { ...answer.error, retryable } };
  }
  const { status, body } = answer.value;
  if (status === 200) return ok(body);
  const retryable = status === 408 || status === 429 || status >= 500;
  return { ok: false, error: { ...appError("http-status", `the server answered ${status}`), retryable } };
}

/** A file that the kernel command line names is wanted: its absence is a failure. Paths are tried on the medium too. */
async function readNamed(host: Host, value: string, boot: BootFacts | undefined): Promise<Read> {
  const medium = boot?.medium?.mountPoint;
  const onMedium = /^medium:(\/.*)$/.exec(value)?.[1];
  const places = onMedium === undefined ? [value] : [];
  if (medium !== undefined) places.push(`${medium}${onMedium ?? value}`);
  for (const path of places) {
    const read = await readFile(host, path);
    if (!read.ok || read.value !== null) return read;
  }
  if (places.length === 0) return fail("no-medium", "this system was not booted from a medium");
  return fail("ENOENT", `there is no ${places.join(" nor ")}`);
}

/** Without user, password and query, where secrets are put. */
function shown(value: string): string {
  if (!/^https?:/.test(value) || !URL.canParse(value)) return value;
  const url = new URL(value);
  return `${url.protocol}//${url.host}${url.pathname}`;
}
