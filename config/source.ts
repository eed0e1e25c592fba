/** What a source says, judged: pure. config/driver.ts reads them in their order. */
import { isDeepStrictEqual } from "node:util";
import type { AppError } from "../kit/app-error.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Result } from "../kit/result.ts";
import { appError } from "../kit/app-error.ts";
import { parseDocument } from "./load.ts";
import { redactPlain } from "./redact.ts";
import { sha256Of } from "../kit/sha256.ts";

export interface SourceContext {
  readonly paths: Paths;
  readonly boot?: BootFacts;
  /** /proc/cmdline. */
  readonly cmdline: string;
  /** Looks for seed media, when nothing more specific has answered. Without it there are none. */
  readonly readSeeds?: () => Promise<Result<SeedReading, AppError>>;
  /** Whoever only wants the answer does not wait for media that come after it. */
  readonly areShadowedUnnamed?: true;
}

/** What all seed media hold that are plugged in; `notes` say which were passed over, and why. */
export interface SeedReading {
  readonly files: readonly SeedFile[];
  readonly notes: readonly string[];
}

export interface SeedFile {
  /** `config.yaml on /dev/sdb1 (CORIUM)`. */
  readonly origin: string;
  /** A file made for Corium, which must hold a document; user-data may be for others. */
  readonly isOurs: boolean;
  readonly content: Result<Uint8Array, AppError>;
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

export type FoundSource = Source & { readonly kind: "found" };

export interface Origin {
  readonly origin: string;
  readonly isOurs: boolean;
}

/** The parts of a NoCloud seed that only cloud-init would carry out. */
export const UNUSED_FILES: readonly string[] = ["network-config", "vendor-data"];

export function unusedFile(name: string, origin: string): string {
  const instead = name === "network-config" ? "; addresses are given with ip= on the kernel command line" : "";
  return `${origin} is not used: there is no cloud-init here${instead}`;
}

/** `null`: absent. What is no answer is noted, what is ours and no document is a failure. */
export function judge(of: Origin, bytes: Uint8Array | null, notes: string[]): Source {
  if (bytes === null) return { kind: "none", notes };
  const text = decodeText(bytes);
  if (text === undefined) {
    if (!of.isOurs) return noAnswer(of, "it is not text", notes);
    return failure(of, appError("not-utf8", "it is not UTF-8 text"), notes);
  }
  if (text.trim() === "") return noAnswer(of, "it is empty", notes);
  const { findings } = parseDocument(text, { nowMs: 0 });
  const nothing = findings.find(({ code }) => code === "no-configuration");
  if (nothing !== undefined) {
    // A cloud-config of others, and a template of nothing but comments, mask nothing.
    const isForOthers = !of.isOurs || /^\ufeff?#cloud-config/.test(text) || isOnlyComments(text);
    if (isForOthers) return noAnswer(of, nothing.message, notes);
    const hint = nothing.hint === undefined ? {} : { hint: nothing.hint };
    return failure(of, appError("no-configuration", nothing.message, hint), notes);
  }
  const isScript = !of.isOurs && !/^corium:/m.test(text) && findings.some(({ code }) => code === "not-yaml");
  if (isScript) return noAnswer(of, "it is not YAML", notes);
  return { kind: "found", text, origin: of.origin, sha256: sha256Of(bytes), pinned: false, notes };
}

/** Seed media are one source: they speak with one voice, or nobody knows which of them was meant. */
export function agreedSeed(found: readonly FoundSource[], notes: readonly string[]): Source {
  const [first, ...others] = found;
  if (first === undefined) return { kind: "none", notes };
  const other = others.find((each) => !isSameDocument(first.text, each.text));
  if (other === undefined) return first;
  const error = appError("conflict", `two seeds say different things: ${first.origin}, and ${other.origin}`, {
    hint: "take the one away that is not meant for this machine",
  });
  return { kind: "failed", error, retryable: false, notes };
}

/** A cloud-config and a plain document may well be the same to us. */
function isSameDocument(a: string, b: string): boolean {
  if (a === b) return true;
  // Plain data: what a Secret hides would be equal to everything.
  const [left, right] = [a, b].map((text) => parseDocument(text, { nowMs: 0 }).raw);
  return left !== undefined && isDeepStrictEqual(left, right);
}

export function failure(
  { origin }: Pick<Origin, "origin">,
  cause: AppError & { readonly retryable?: boolean },
  notes: readonly string[],
): Source & { readonly kind: "failed" } {
  const error = appError("source", `the configuration source ${origin} failed`, { cause });
  return { kind: "failed", error, retryable: cause.retryable === true, notes };
}

function noAnswer({ origin }: Origin, why: string, notes: string[]): Source & { readonly kind: "none" } {
  notes.push(`${origin} is no answer: ${why}`);
  return { kind: "none", notes };
}

const isOnlyComments = (text: string): boolean =>
  text
    .replace(/^\ufeff/, "")
    .split("\n")
    .every((line) => /^\s*(?:#.*)?$/.test(line));

export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    // With its byte order mark: the record keeps the document as it was given.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export function argumentProblem(value: string | undefined, pin: string | undefined): AppError | undefined {
  if (pin !== undefined && !/^[0-9a-f]{64}$/.test(pin)) {
    return appError("argument", "corium.config.sha256 is not 64 hexadecimal digits");
  }
  if (value === undefined || value === "") {
    return pin === undefined ? undefined : appError("argument", "corium.config.sha256 is given without corium.config");
  }
  if (value.startsWith("http://") && pin === undefined) {
    return appError("argument", `corium.config=${shownUrl(value)} is plain http`, {
      hint: "use https, or pin the content with corium.config.sha256=",
    });
  }
  if (/^(?:https?:\/\/[^/]|medium:\/.|\/.)/.test(value)) return undefined;
  return appError("argument", `corium.config=${shownUrl(value)} is neither an absolute path nor an https URL`, {
    hint: "e.g. corium.config=/corium/node-1.yaml or corium.config=https://seed.example.net/node-1.yaml",
  });
}

/** Over plain http everyone on the provisioning network reads along. */
export function warnClearText(found: FoundSource, notes: string[]): Source {
  const secrets: string[] = [];
  const note = (path: string): string => (secrets.push(path), "");
  redactPlain(parseDocument(found.text, { nowMs: 0 }).raw, { mark: note });
  if (secrets.length > 0) notes.push(`${found.origin} came over plain http and holds secrets: ${secrets.join(", ")}`);
  return found;
}

/** Without user, password and query, where secrets are put. */
export function shownUrl(value: string): string {
  if (!/^https?:/.test(value) || !URL.canParse(value)) return value;
  const url = new URL(value);
  return `${url.protocol}//${url.host}${url.pathname}`;
}
