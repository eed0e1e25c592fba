/** Knowing a node that somebody else claimed: whose store was made before, or who lost it, compares the fingerprint too. */
import { API_PORT } from "../api/contract.ts";
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { formatAddress, parseAddress } from "./address.ts";
import type { Arguments } from "./arguments.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { isFingerprint, learnFingerprint } from "./fingerprint.ts";

export const trustCommand: CctlCommand = {
  words: ["trust"],
  operands: "ADDR",
  summary: "know a node that was claimed from elsewhere with the same CA",
  flags: [
    { name: "fingerprint", value: "SHA256:…", help: "of the node; without it you are asked to compare" },
    { name: "name", value: "NAME", help: "what you call it here" },
  ],
  run: trust,
};

async function trust(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const address = parseAddress(given.positionals[0] ?? "", API_PORT);
  if (!address.ok) return fail("usage", address.error);
  const wanted = given.flags.get("fingerprint");
  if (wanted !== undefined && !isFingerprint(wanted)) {
    return fail("usage", `'${wanted}' is no fingerprint: wanted SHA256: and 43 characters`);
  }
  const fingerprint = await learnFingerprint(context, address.value, wanted);
  if (!fingerprint.ok) return fingerprint;
  const where = formatAddress(address.value);
  const name = given.flags.get("name");
  const pin = { address: where, fingerprint: fingerprint.value, ...(name === undefined ? {} : { name }) };
  const pinned = await context.store.pin(pin, context.clock);
  if (!pinned.ok) return pinned;
  context.io.out(`${where} is known by ${fingerprint.value}\nNext: cctl status ${name ?? where}\n`);
  return ok(exitStatus.done);
}
