/**
 * Claiming a node: its fingerprint is compared before the code, the CA or the document is sent, and they then go
 * over the very connection whose certificate was compared.
 */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { API_PORT, type EnrollAnswer, type EnrollBody } from "../api/contract.ts";
import { type NodeAddress, formatAddress, parseAddress } from "./address.ts";
import type { Arguments } from "./arguments.ts";
import { type ApiAnswer, answerTimeoutMs, connectTimeoutMs, refusal } from "./client.ts";
import { type HttpAnswer, openConnection } from "./connection.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { readDocument } from "./document-file.ts";
import { printAnswer } from "./answers.ts";
import { isFingerprint, isYes, learnFingerprint } from "./fingerprint.ts";
import { jsonPrintable, printable } from "./printable.ts";

export const enrollCommand: CctlCommand = {
  words: ["enroll"],
  operands: "ADDR",
  summary: "claim a node that waits for it, optionally with its document",
  flags: [
    { name: "code", value: "XXXX-XXXX", help: "from the node's console" },
    { name: "fingerprint", value: "SHA256:…", help: "from the node's console; without it you are asked to compare" },
    { name: "config", value: "FILE", help: "the document it shall become; - is standard input" },
    { name: "name", value: "NAME", help: "what you call it here; default the name in the document" },
    { name: "own-patch", help: "a k0s patch that overrides what Corium models is meant" },
    { name: "wipe-own", help: "what this node itself made may be lost, once, where its document says wipe" },
  ],
  run: enroll,
};

async function enroll(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const address = parseAddress(given.positionals[0] ?? "", API_PORT);
  if (!address.ok) return fail("usage", address.error);
  const authority = await context.store.readText("ca");
  if (!authority.ok) return authority;
  if (authority.value === undefined) {
    return fail("no-ca", `there is no operator CA in ${context.store.dir}`, { hint: "cctl pki init makes one" });
  }
  const file = given.flags.get("config");
  const document = file === undefined ? undefined : await readDocument(context, file, "new node");
  if (document !== undefined && !document.ok) return document;
  const wanted = given.flags.get("fingerprint");
  if (wanted !== undefined && !isFingerprint(wanted)) {
    return fail("usage", `'${wanted}' is no fingerprint: wanted SHA256: and 43 characters`);
  }

  const agreed = await confirmOwnLoss(context, given);
  if (!agreed.ok) return agreed;
  const fingerprint = await learnFingerprint(context, address.value, wanted);
  if (!fingerprint.ok) return fingerprint;
  const code = await learnCode(context, given);
  if (!code.ok) return code;

  const name = given.flags.get("name") ?? document?.value.name;
  const body: EnrollBody = {
    ...(code.value === undefined ? {} : { code: code.value }),
    operatorCA: authority.value,
    ...(document === undefined ? {} : { document: document.value.text }),
    ...(given.flags.has("wipe-own") ? { wipeOwn: true } : {}),
  };
  const isOwned = given.flags.has("own-patch");
  let answer = await send(context, address.value, fingerprint.value, isOwned ? { ...body, acknowledge: true } : body);
  if (!answer.ok) return answer;
  if (answer.value.status === 409 && reasonOf(answer.value) === "would-bootstrap" && !isOwned) {
    const isMeant = await confirmBootstrap(context, answer.value);
    if (!isMeant.ok) return isMeant;
    answer = await send(context, address.value, fingerprint.value, { ...body, acknowledge: true });
    if (!answer.ok) return answer;
  }
  const where = formatAddress(address.value);
  if (answer.value.status !== 200) {
    if (context.output === "json") context.io.out(`${jsonPrintable(answer.value.body.trimEnd())}\n`);
    return { ok: false, error: refusal(where, answer.value.status, parse(answer.value)) };
  }
  const pin = { address: where, fingerprint: fingerprint.value, ...(name === undefined ? {} : { name }) };
  const pinned = await context.store.pin(pin, context.clock);
  if (!pinned.ok) return pinned;
  const result: ApiAnswer = { ...answer.value, json: parse(answer.value) };
  printAnswer<EnrollAnswer>(context, result, ({ operation }) => {
    const node = name ?? where;
    const next =
      operation === undefined ? `cctl status ${node}` : `cctl operations ${node} ${printable(operation)} --follow`;
    return `${where} is yours; it is known by ${fingerprint.value}\nNext: ${next}\n`;
  });
  return ok(exitStatus.done);
}

/** Absent when the node's document has `api.insecure`; the node says so when it wants one. */
async function learnCode(context: Context, given: Arguments): Promise<Result<string | undefined, AppError>> {
  const code = given.flags.get("code");
  if (code !== undefined) return ok(code);
  if (context.io.ask === undefined) return ok(undefined);
  const answer = await context.io.ask("The code on its console: ");
  if (answer === undefined) return fail("interrupted", "interrupted");
  return ok(answer.trim() === "" ? undefined : answer.trim());
}

/** Every call is a connection of its own, pinned to what was compared. */
async function send(
  context: Context,
  address: NodeAddress,
  fingerprint: string,
  body: EnrollBody,
): Promise<Result<HttpAnswer, AppError>> {
  const options = { address, fingerprint, timeoutMs: connectTimeoutMs, signal: context.io.signal };
  const opened = await openConnection(options);
  if (!opened.ok) return opened;
  return opened.value.call({
    method: "POST",
    path: "/v1/enroll",
    body: JSON.stringify(body),
    idleTimeoutMs: answerTimeoutMs,
  });
}

async function confirmBootstrap(context: Context, answer: HttpAnswer): Promise<Result<void, AppError>> {
  const { message } = refusal("it", answer.status, parse(answer));
  if (context.isAgreed) return ok(undefined);
  if (context.io.ask === undefined) {
    return fail("would-bootstrap", printable(message), { hint: "--yes claims it all the same" });
  }
  context.io.err(`${printable(message)}\n`);
  const isMeant = isYes(await context.io.ask("Claim it, and let it become that? [y/N] "));
  return isMeant ? ok(undefined) : fail("declined", "not claimed");
}

/** Not undone by anything, so that a word is typed rather than a key pressed. */
async function confirmOwnLoss(context: Context, given: Arguments): Promise<Result<void, AppError>> {
  if (!given.flags.has("wipe-own") || context.isAgreed) return ok(undefined);
  if (context.io.ask === undefined) {
    return fail("declined", "nobody is here to agree to --wipe-own, so nothing was sent", { hint: "--yes agrees" });
  }
  const answer = await context.io.ask(
    "Arrays, filesystems and systems that this node made will be lost. Type wipe-own: ",
  );
  return answer?.trim() === "wipe-own" ? ok(undefined) : fail("declined", "nothing was sent");
}

function parse(answer: HttpAnswer): unknown {
  try {
    return JSON.parse(answer.body);
  } catch {
    return undefined;
  }
}

function reasonOf(answer: HttpAnswer): unknown {
  const body = parse(answer);
  return typeof body === "object" && body !== null && "reason" in body ? body.reason : undefined;
}
