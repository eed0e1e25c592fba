/** A person compares the fingerprint that a node shows with its console, before anything is sent to it. */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { type NodeAddress, formatAddress } from "./address.ts";
import { connectTimeoutMs } from "./client.ts";
import { openConnection } from "./connection.ts";
import type { Context } from "./context.ts";

export const isFingerprint = (text: string): boolean => /^SHA256:[A-Za-z0-9+/]{43}$/.test(text);

/** Nothing has been written to the connection when this returns. */
export async function learnFingerprint(
  context: Context,
  address: NodeAddress,
  wanted: string | undefined,
): Promise<Result<string, AppError>> {
  if (wanted !== undefined) return ok(wanted);
  const { ask } = context.io;
  if (ask === undefined) {
    return fail("usage", "nobody is here to compare the fingerprint, so nothing was sent", {
      hint: "give --fingerprint SHA256:… as the node's console shows it",
    });
  }
  const opened = await openConnection({ address, timeoutMs: connectTimeoutMs, signal: context.io.signal });
  if (!opened.ok) return opened;
  opened.value.close();
  const { fingerprint } = opened.value;
  context.io.err(`${formatAddress(address)} shows the fingerprint\n\n  ${fingerprint}\n\n`);
  const answer = await ask("Does its console show the same? [y/N] ");
  if (isYes(answer)) return ok(fingerprint);
  return fail("wrong-peer", "the fingerprint was not confirmed, so nothing was sent", {
    hint: "if it differs, somebody else answers at this address",
  });
}

export const isYes = (answer: string | undefined): boolean => /^y(es)?$/i.test(answer?.trim() ?? "");
