/** Encrypted volumes: a recovery key, and opening one that stayed locked. Keys go over the connection, never into argv. */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { RecoveryAnswer, UnlockAnswer } from "../api/contract.ts";
import { printAnswer } from "./answers.ts";
import type { Arguments } from "./arguments.ts";
import { clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { printable } from "./printable.ts";

export const luksCommands: readonly CctlCommand[] = [
  {
    words: ["luks", "recovery"],
    operands: "ADDR NAME",
    summary: "make a recovery key of an encrypted volume; it is shown once and kept nowhere",
    flags: [{ name: "replace", help: "although there is one already, which stops working" }],
    run: recovery,
  },
  {
    words: ["luks", "unlock"],
    operands: "ADDR NAME",
    summary: "open an encrypted volume that stayed locked; the key is asked for, or read from standard input",
    flags: [],
    run: unlock,
  },
];

const pathOf = (given: Arguments, verb: string): string =>
  `/v1/luks/${encodeURIComponent(given.positionals[1] ?? "")}/${verb}`;

async function recovery(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const body = given.flags.has("replace") ? { replace: true } : {};
  const answer = await client.value.post(pathOf(given, "recovery"), body);
  if (!answer.ok) return answer;
  printAnswer<RecoveryAnswer>(context, answer.value, ({ recoveryKey }) => `${printable(recoveryKey)}\n`);
  if (context.output === "text")
    context.io.err("Keep it away from the machine: it opens the volume, and nobody can show it again.\n");
  return ok(exitStatus.done);
}

async function unlock(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const name = given.positionals[1] ?? "";
  const { io } = context;
  const typed =
    io.askSecret === undefined
      ? await io.readStdin()
      : await io.askSecret(`Passphrase or recovery key of volume ${name}: `);
  if (typed === undefined) return fail("interrupted", "interrupted");
  const key = typed.trim();
  if (key === "") return fail("usage", "no key was given", { hint: "type it, or pass it on standard input" });
  const answer = await client.value.post(pathOf(given, "unlock"), { key });
  if (!answer.ok) return answer;
  printAnswer<UnlockAnswer>(context, answer.value, ({ boundAnew, problems }) =>
    [
      `volume ${name} is open`,
      ...(boundAnew ? ["the TPM opens it again from the next boot on"] : []),
      ...problems.map((text) => `but: ${printable(text)}`),
    ]
      .map((line) => `${line}\n`)
      .join(""),
  );
  const { problems } = answer.value.json as UnlockAnswer;
  return ok(problems.length === 0 ? exitStatus.done : exitStatus.failed);
}
