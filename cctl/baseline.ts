/** A node that lost the record of what it runs: the document that was applied last is named for it. */
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { AdoptAnswer, AdoptBody } from "../api/contract.ts";
import { printAnswer } from "./answers.ts";
import type { Arguments } from "./arguments.ts";
import { clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { readDocument } from "./document-file.ts";

export const baselineCommand: CctlCommand = {
  words: ["baseline", "adopt"],
  operands: "ADDR",
  summary: "record what a node runs that lost the record of it: if its files are what the document renders",
  flags: [
    { name: "file", short: "f", value: "FILE", help: "the document that was applied last; - is standard input" },
    { name: "dry-run", help: "compare and stop" },
  ],
  run: adopt,
};

async function adopt(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const file = given.flags.get("file");
  if (file === undefined) return fail("usage", "baseline adopt needs --file FILE");
  const document = await readDocument(context, file, "node in service");
  if (!document.ok) return document;
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const body: AdoptBody = { document: document.value.text };
  const isDry = given.flags.has("dry-run");
  const answer = await client.value.post(`/v1/baseline${isDry ? "?dryRun=true" : ""}`, body);
  if (!answer.ok) return answer;
  printAnswer<AdoptAnswer>(context, answer.value, ({ status }) =>
    status === "planned" ? "the node runs this document\n" : "recorded: the node runs this document\n",
  );
  return ok(exitStatus.done);
}
