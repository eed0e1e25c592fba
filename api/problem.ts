import type { AppError } from "../kit/app-error.ts";
import type { ErrorBody } from "./contract.ts";

export type FailureStatus = 400 | 401 | 403 | 404 | 405 | 408 | 409 | 412 | 413 | 415 | 429 | 500 | 501 | 503;

/** A refusal: `error` is a sentence that says what to do. */
export function problem(
  status: FailureStatus,
  error: string,
  more: Omit<ErrorBody, "error"> = {},
  headers: Readonly<Record<string, string>> = {},
): Response {
  const body: ErrorBody = { error, ...more };
  return json(status, body, headers);
}

/** The chain on one line and the cure behind it. */
export function sentence(error: AppError): string {
  const chain: string[] = [];
  const hints: string[] = [];
  for (let at: AppError | undefined = error; at !== undefined; at = at.cause) {
    chain.push(at.message, ...(at.details ?? []).slice(0, 8));
    if (at.hint !== undefined) hints.push(at.hint);
  }
  return [chain.join(": "), ...hints].join("; ");
}

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  const text = `${JSON.stringify(body)}\n`;
  return new Response(text, {
    status,
    headers: {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(text)),
      "cache-control": "no-store",
      ...headers,
    },
  });
}
