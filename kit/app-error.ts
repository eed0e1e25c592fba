import { err } from "./result.ts";

/**
 * An expected failure, as a value. `message` is one lower-case sentence without a full stop that never
 * repeats what `cause` says; `hint` is the cure. No field ever holds a secret.
 */
export interface AppError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly cause?: AppError;
  /** Further lines a reader needs, e.g. each candidate disk with its reason. */
  readonly details?: readonly string[];
}

export function appError(code: string, message: string, more: Omit<AppError, "code" | "message"> = {}): AppError {
  return { code, message, ...more };
}

/** Shorthand for a failed Result. */
export function fail(
  code: string,
  message: string,
  more: Omit<AppError, "code" | "message"> = {},
): { readonly ok: false; readonly error: AppError } {
  return err(appError(code, message, more));
}

/** The whole chain on one line, then the details and the hints, each once. */
export function formatError(error: AppError): string {
  const chain: string[] = [];
  const below: string[] = [];
  for (let at: AppError | undefined = error; at !== undefined; at = at.cause) {
    chain.push(at.message);
    below.push(...(at.details ?? []).map((line) => `  ${line}`));
    if (at.hint !== undefined) below.push(`  hint: ${at.hint}`);
  }
  return [chain.join(": "), ...below].join("\n");
}
