/** The operator's document, checked by the node's own code before anything is sent anywhere. */
import { ANY_TIME } from "../config/load.ts";
import { type AppError, fail } from "../kit/app-error.ts";
import { formatFinding, hasErrors } from "../kit/finding.ts";
import { type Result, ok } from "../kit/result.ts";
import { checkDocument } from "../supervisor/check-document.ts";
import type { Context } from "./context.ts";

export interface DocumentFile {
  readonly text: string;
  /** `node.name`, when the document has one. */
  readonly name?: string;
  /** `cluster.name` of a document that has a role; a file of add-ons alone is of no cluster. */
  readonly cluster?: string;
}

/** `of`: for a node in service only the node can say which certificates it runs with although they have ended. */
export async function readDocument(
  context: Context,
  file: string,
  of: "new node" | "node in service",
): Promise<Result<DocumentFile, AppError>> {
  const read = file === "-" ? ok(await context.io.readStdin()) : await context.files.readText(file);
  if (!read.ok) return fail("document", `${file} can't be read`, { cause: read.error });
  const shown = file === "-" ? "standard input" : file;
  const nowMs = of === "new node" ? context.clock.nowMs() : ANY_TIME;
  const { findings, document } = checkDocument(read.value, { file: shown, nowMs });
  if (document === undefined || hasErrors(findings)) {
    return fail("document", `${shown} is not valid; nothing was sent`, {
      details: findings.flatMap((finding) => formatFinding(finding).split("\n")),
    });
  }
  for (const warning of findings) context.io.err(`${formatFinding(warning)}\n`);
  const { name } = document.node;
  return ok({
    text: read.value,
    ...(name === undefined ? {} : { name }),
    ...(document.role === undefined ? {} : { cluster: document.cluster.name }),
  });
}
