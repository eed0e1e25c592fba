/**
 * Secrets that a document names but does not hold: how one attempt to get one is judged (pure). One attempt, or
 * until `waitFor` has passed; only what time can mend is waited out.
 */
import type { AppError } from "../kit/app-error.ts";
import type { Document } from "../config/document.ts";
import { appError } from "../kit/app-error.ts";
import { rangesOverlap } from "./addresses.ts";

export type Attempt =
  | { readonly kind: "value"; readonly text: string }
  /** Time may mend it. */
  | { readonly kind: "later"; readonly error: AppError }
  | { readonly kind: "never"; readonly error: AppError };

/** 2 s doubling to 32 s. */
export const backoffMs = (attempt: number): number => Math.min(2_000 * 2 ** Math.min(attempt, 10), 32_000);

/** A trailing newline belongs to the file, not to the secret. */
export function judgeText(text: string, where: string): Attempt {
  const trimmed = text.trim();
  if (trimmed === "") return { kind: "later", error: appError("secret-blank", `${where} is blank`) };
  return { kind: "value", text: trimmed };
}

export function judgeFileError(error: AppError, path: string): Attempt {
  const kind = error.code === "ENOENT" ? "later" : "never";
  return { kind, error: appError("secret-file", `cannot read ${path}`, { cause: error }) };
}

const passingStatus = new Set([404, 408, 425, 429, 502, 503, 504]);

export function judgeStatus(status: number, body: string, where: string): Attempt {
  if (status === 200) return judgeText(body, where);
  const error = appError("secret-status", `${where} answered with status ${status}`);
  return { kind: passingStatus.has(status) ? "later" : "never", error };
}

const passingCode = new Set(["dns", "refused", "timeout"]);

/** A certificate that is not valid *yet* is a matter of time while the clock is not synchronised. */
export function judgeHttpError(error: AppError, where: string, isClockSynced: boolean): Attempt {
  const isPassing = passingCode.has(error.code) || (error.code === "tls-not-yet-valid" && !isClockSynced);
  return {
    kind: isPassing ? "later" : "never",
    error: appError("secret-fetch", `cannot fetch ${where}`, { cause: error }),
  };
}

/** An URL without what may be secret in it: user, password, query, fragment. */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? "the given URL" : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}

/** A name, with what it leads to. */
export interface ResolvedName {
  readonly name: string;
  readonly addresses: readonly string[];
}

/**
 * Is this host only to be reached through an overlay of the document? Then it is asked after the overlay is up. A name
 * is where all that it leads to is; one that leads nowhere is taken for one outside.
 */
export function isBehindOverlay(url: string, document: Document, names: readonly ResolvedName[] = []): boolean {
  const host = (URL.parse(url)?.hostname ?? "").replace(/^\[|\]$/g, "");
  const isAddress = /^[0-9.]+$/.test(host) || host.includes(":");
  const addresses = isAddress ? [host] : (names.find(({ name }) => name === host)?.addresses ?? []);
  const ranges = document.wireguard.flatMap(({ address, peers }) => [
    ...address,
    ...peers.flatMap(({ allowedIPs }) => allowedIPs),
  ]);
  const isInside = (address: string): boolean =>
    ranges.some((range) => !range.endsWith("/0") && rangesOverlap(range, address));
  return addresses.length > 0 && addresses.every(isInside);
}
