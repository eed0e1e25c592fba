/** Looks for the node's document, most specific source first. Reads files and one URL, changes nothing. */
import type { AppError } from "../kit/app-error.ts";
import type { BootFacts } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { appError, fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import { argumentValue, parseCmdline, unknownArguments } from "./cmdline.ts";
import type { FoundSource, Origin, Source, SourceContext } from "./source.ts";
import {
  agreedSeed,
  argumentProblem,
  decodeText,
  failure,
  judge,
  shownUrl,
  UNUSED_FILES,
  unusedFile,
  warnClearText,
} from "./source.ts";
import { sha256Of } from "../kit/sha256.ts";

/** `null`: absent. */
type Read = Result<Uint8Array | null, AppError & { readonly retryable?: boolean }>;

interface Candidate extends Origin {
  read(): Promise<Read>;
}

type Search = (notes: string[]) => Promise<Source>;

const MAX_BYTES = 1024 * 1024;
/** An image flavour that has it leaves seeds to it, and takes what it made of them. */
const CLOUD_INIT = "/usr/bin/cloud-init";
/** Where cloud-init runs, it carried out all else of this one. */
export const CLOUD_INIT_MERGED = "/var/lib/cloud/instance/cloud-config.txt";

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
  const argument: Candidate | undefined =
    value === undefined || value === ""
      ? undefined
      : {
          origin: `corium.config=${shownUrl(value)}`,
          isOurs: true,
          read: () => readArgument(host, value, argumentValue(list, "corium.config.ca"), pin !== undefined, boot),
        };
  const search =
    (candidate: Candidate): Search =>
    (into) =>
      tryCandidate(candidate, into);
  const seed: Search = (into) => findSeed(host, context, into);
  const before = [search(fileCandidate(host, paths.config, true)), seed];
  if (argument !== undefined && pin !== undefined) return findPinned(argument, pin, before, notes);
  for (const [at, each] of before.entries()) {
    const found = await each(notes);
    if (found.kind === "found" && context.areShadowedUnnamed !== true)
      await noteShadowed(found, before.slice(at + 1), argument, notes);
    if (found.kind !== "none") return found;
  }
  const named = argument === undefined ? undefined : await tryCandidate(argument, notes);
  if (named !== undefined && named.kind !== "none") return named;
  return tryCandidate(fileCandidate(host, paths.bakedConfig, true), notes);
}

/** A stick that was left in, an argument that was left over: not obeyed, and said. A server is not asked for it. */
async function noteShadowed(
  found: FoundSource,
  others: readonly Search[],
  argument: Candidate | undefined,
  notes: string[],
): Promise<void> {
  const origins: string[] = [];
  for (const search of others) {
    const shadowed = await search([]);
    if (shadowed.kind === "found" && shadowed.sha256 !== found.sha256) origins.push(shadowed.origin);
  }
  if (argument !== undefined) origins.push(argument.origin);
  notes.push(...origins.map((origin) => `${origin} is not used: ${found.origin} comes first`));
}

/** Source 2. All that speak must say the same, and one that can't be read might say anything. */
async function findSeed(host: Host, context: SourceContext, notes: string[]): Promise<Source> {
  const cloudInit = await host.files.stat(CLOUD_INIT);
  if (!cloudInit.ok) return failure({ origin: CLOUD_INIT }, cloudInit.error, notes);
  if (cloudInit.value !== null) return tryCandidate(fileCandidate(host, CLOUD_INIT_MERGED, false), notes);
  const folder = context.boot?.medium?.mountPoint;
  if (folder !== undefined) await noteUnusedFiles(host, folder, notes);
  const onBootMedium =
    folder === undefined
      ? []
      : [fileCandidate(host, `${folder}/config.yaml`, true), fileCandidate(host, `${folder}/user-data`, false)];
  const seeds = await (context.readSeeds?.() ?? Promise.resolve(ok({ files: [], notes: [] })));
  if (!seeds.ok) return failure({ origin: "seed media" }, seeds.error, notes);
  notes.push(...seeds.value.notes);
  const onMedia = seeds.value.files.map((file): Candidate => ({ ...file, read: () => Promise.resolve(file.content) }));
  const answers: FoundSource[] = [];
  for (const candidate of [...onBootMedium, ...onMedia]) {
    const found = await tryCandidate(candidate, notes);
    if (found.kind === "failed") return found;
    if (found.kind === "found") answers.push(found);
  }
  return agreedSeed(answers, notes);
}

async function noteUnusedFiles(host: Host, folder: string, notes: string[]): Promise<void> {
  for (const name of UNUSED_FILES) {
    const file = await host.files.stat(`${folder}/${name}`);
    if (file.ok && file.value !== null) notes.push(unusedFile(name, `${folder}/${name}`));
  }
}

/** Pinned content is the answer, and whatever says otherwise is refused rather than obeyed or ignored. */
async function findPinned(
  argument: Candidate,
  pin: string,
  others: readonly Search[],
  notes: string[],
): Promise<Source> {
  const read = await argument.read();
  if (!read.ok) return failure(argument, read.error, notes);
  const sha256 = sha256Of(read.value ?? new Uint8Array());
  if (sha256 !== pin) {
    const error = appError("sha256", `${argument.origin} is not the document that corium.config.sha256 pins`, {
      details: [`wanted ${pin}`, `got ${sha256}`],
      hint: "the file was changed, or the argument is out of date",
    });
    return { kind: "failed", error, retryable: false, notes };
  }
  for (const search of others) {
    const found = await search(notes);
    if (found.kind === "failed") return found;
    if (found.kind === "none" || found.sha256 === pin) continue;
    const error = appError("conflict", `${argument.origin} is pinned, but ${found.origin} says otherwise`, {
      hint: `take ${found.origin} away, or the kernel arguments`,
    });
    return { kind: "failed", error, retryable: false, notes };
  }
  const found = judge(argument, read.value, notes);
  if (found.kind !== "found") return found;
  const pinned: FoundSource = { ...found, pinned: true };
  return argument.origin.startsWith("corium.config=http://") ? warnClearText(pinned, notes) : pinned;
}

async function tryCandidate(candidate: Candidate, notes: string[]): Promise<Source> {
  const read = await candidate.read();
  return read.ok ? judge(candidate, read.value, notes) : failure(candidate, read.error, notes);
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
  const trust = authority === undefined ? undefined : await readAuthority(host, authority, boot);
  if (trust?.ok === false) return trust;
  const pem = trust === undefined ? {} : { trust: trust.value ?? "" };
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

/**
 * The certificates of `corium.config.ca=`, PEM; undefined without the argument. A file that is named and is not there is a
 * failure.
 */
export async function readSiteAuthority(
  host: Host,
  { boot, cmdline }: Pick<SourceContext, "boot" | "cmdline">,
): Promise<Result<string | undefined, AppError>> {
  const value = argumentValue(parseCmdline(cmdline), "corium.config.ca");
  if (value === undefined || value === "") return ok(undefined);
  return readAuthority(host, value, boot);
}

/** Undefined: it is no text. */
async function readAuthority(
  host: Host,
  value: string,
  boot: BootFacts | undefined,
): Promise<Result<string | undefined, AppError>> {
  const read = await readNamed(host, value, boot);
  return read.ok ? ok(read.value === null ? undefined : decodeText(read.value)) : read;
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
