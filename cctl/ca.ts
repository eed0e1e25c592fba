/** A new CA for nodes that are reached with the old one: proved, obeyed from the first connection on, or undone. */
import type { ApplyAnswer, CaNonceAnswer } from "../api/contract.ts";
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { Operation } from "../state/model.ts";
import { signProof } from "../pki/proof.ts";
import type { Arguments } from "./arguments.ts";
import { agree } from "./agree.ts";
import { formatAddress } from "./address.ts";
import { clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { judge } from "./follow.ts";
import { openStore, type Store } from "./store.ts";

export const caCommand: CctlCommand = {
  words: ["ca", "rotate"],
  operands: "ADDR",
  summary: "have a node obey another operator CA; the old one's certificates end with it",
  flags: [{ name: "to", value: "FOLDER", help: "the store of the new CA, with an admin's certificate: cctl pki init" }],
  run: rotate,
};

interface NewCa {
  readonly store: Store;
  readonly operatorCA: string;
  readonly certificate: string;
  readonly privateKey: string;
}

async function readNewCa(context: Context, folder: string): Promise<Result<NewCa, AppError>> {
  const store = openStore(context.files, folder);
  const operatorCA = await store.readText("ca");
  if (!operatorCA.ok) return operatorCA;
  const certificate = await store.readText("certificate");
  if (!certificate.ok) return certificate;
  const key = await store.readKey("key");
  if (!key.ok) return key;
  if (operatorCA.value === undefined || certificate.value === undefined || key.value === undefined) {
    return fail("no-ca", `there is no CA with a certificate of its own in ${folder}`, {
      hint: `cctl --dir ${folder} pki init makes both`,
    });
  }
  const [ca, own] = [operatorCA.value, certificate.value];
  return ok({ store, operatorCA: ca, certificate: own, privateKey: key.value.reveal() });
}

async function rotate(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const [node = ""] = given.positionals;
  const folder = given.flags.get("to");
  if (folder === undefined) return fail("usage", "ca rotate needs --to FOLDER, the store of the new CA");
  const next = await readNewCa(context, folder);
  if (!next.ok) return next;
  const target = await context.store.resolve(node);
  if (!target.ok) return target;
  const client = await clientFor(context, node);
  if (!client.ok) return client;
  const { label } = client.value;
  const agreed = await agree(context, `Have ${label} obey the CA of ${folder}, and no certificate of the old one`);
  if (!agreed.ok) return agreed;
  // Known there before anything is changed: who has the new certificate must not have to trust the node's first answer.
  const { pinned } = target.value;
  const known = pinned === undefined ? ok(undefined) : await next.value.store.pin(pinned, context.clock);
  if (!known.ok) return known;
  const challenge = await client.value.get("/v1/ca/rotate");
  if (!challenge.ok) return challenge;
  const proof = signProof((challenge.value.json as CaNonceAnswer).nonce, next.value);
  const made = await client.value.post("/v1/ca/rotate", { operatorCA: next.value.operatorCA, proof });
  if (!made.ok) return made;
  const { operation = "" } = made.value.json as ApplyAnswer;
  const kept = await connect({ ...context, store: next.value.store }, formatAddress(target.value.address), operation);
  if (!kept.ok) {
    return fail(kept.error.code, `${label} could not be reached with the new CA`, {
      cause: kept.error,
      hint: `it obeys the old one again within ten minutes; cctl cancel ${node} undoes it at once`,
    });
  }
  context.io.out(
    context.output === "text"
      ? `${label} obeys the CA of ${folder} now\nNext: cctl --dir ${folder} status ${node}\n`
      : `${made.value.body.trimEnd()}\n`,
  );
  return ok(exitStatus.done);
}

/** The first connection of the new CA's is what confirms it; the operation says so. */
async function connect(context: Context, address: string, operation: string): Promise<Result<Operation, AppError>> {
  const client = await clientFor(context, address);
  if (!client.ok) return client;
  const answer = await client.value.get(`/v1/operations/${encodeURIComponent(operation)}`);
  return answer.ok ? judge(answer.value.json as Operation) : answer;
}
