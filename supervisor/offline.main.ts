/** Commands that work anywhere, with the very code that runs on the node: validate, schema, explain. */
import { open } from "node:fs/promises";
import type { Command, CommandIo } from "../kit/command.ts";
import type { Finding } from "../kit/finding.ts";
import type { ParsedDocument } from "../config/load.ts";
import { MOST_FINDINGS } from "../config/cap.ts";
import { decodeSays } from "../config/messages/decode.ts";
import { formatFinding, visible } from "../kit/finding.ts";
import { checkDocument } from "./check-document.ts";
import { type OfflineSpec, readArguments, showData } from "./offline-arguments.ts";

const VALIDATE: OfflineSpec = {
  name: "validate",
  operands: "FILE… | -",
  summary: "Checks documents as the node does. 0: all are valid; 1: one is not, or could not be read; 2: wrong usage.",
  count: [1, Number.POSITIVE_INFINITY],
};

export const validateCommand: Command = async (argv, io) => {
  const given = readArguments(argv, io, VALIDATE);
  if (typeof given === "number") return given;
  const { positionals, output } = given;
  const results = [];
  for (const file of positionals) results.push({ file, ...(await loadDocument(file, io)) });
  io.out(output === "text" ? results.map(showAsText).join("") : showData(results.map(showAsJson), output));
  return results.every(({ document }) => document !== undefined) ? 0 : 1;
};

const SCHEMA: OfflineSpec = {
  name: "schema",
  operands: "",
  summary: "Prints the JSON Schema of the document, for editors.",
  count: [0, 0],
};

export const schemaCommand: Command = async (argv, io) => {
  const given = readArguments(argv, io, SCHEMA);
  if (typeof given === "number") return given;
  const { documentJsonSchema } = await import("../config/json-schema.ts");
  io.out(showData(documentJsonSchema(), given.output === "yaml" ? "yaml" : "json"));
  return 0;
};

const EXPLAIN: OfflineSpec = {
  name: "explain",
  operands: "FIELD",
  summary: "Says what a field of the document is: wireguard.peers.endpoint",
  count: [1, 1],
};

export const explainCommand: Command = async (argv, io) => {
  const given = readArguments(argv, io, EXPLAIN);
  if (typeof given === "number") return given;
  const [field = ""] = given.positionals;
  const [{ explain }, { classOf }, { explainText }] = await Promise.all([
    import("../config/explain.ts"),
    import("./field-class.ts"),
    import("./explain-text.ts"),
  ]);
  const found = explain(field);
  if ("near" in found) {
    const program = io.program ?? "corium";
    io.err(`${program}: the document has no field ${JSON.stringify(field)}\n`);
    for (const name of found.near) io.err(`  did you mean ${name}?\n`);
    if (found.near.length === 0) io.err(`  ${program} schema prints them all\n`);
    return 1;
  }
  const fieldClass = classOf(found.pattern);
  io.out(
    given.output === "text" ? explainText(found, fieldClass) : showData({ ...found, class: fieldClass }, given.output),
  );
  return 0;
};

/** The document of a file or of standard input (`-`), with all that can be said of it offline. */
export async function loadDocument(
  file: string,
  io: CommandIo,
): Promise<Pick<ParsedDocument, "findings" | "omitted" | "document">> {
  const name = file === "-" ? "standard input" : file;
  let content: string | Uint8Array;
  try {
    content = file === "-" ? await io.readStdin() : await readStart(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    return { findings: [{ severity: "error", path: "", ...decodeSays.unreadable(code), file: name }], omitted: 0 };
  }
  return checkDocument(content, { file: name, nowMs: Date.now() });
}

/** One byte more than a document may have, so that a device file or a disk image does not fill the memory. */
async function readStart(file: string): Promise<Uint8Array> {
  const handle = await open(file, "r");
  try {
    const buffer = new Uint8Array(1024 * 1024 + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.subarray(0, length);
  } finally {
    await handle.close();
  }
}

export interface Validated extends Pick<ParsedDocument, "findings" | "omitted" | "document"> {
  readonly file: string;
}

export function showAsJson({ file, findings, omitted, document }: Validated): unknown {
  const said = { problems: findings.map(toProblem), ...(omitted === 0 ? {} : { omitted }) };
  if (document === undefined) return { file, valid: false, ...said };
  const { role, cluster } = document;
  return { file, valid: true, ...(role === undefined ? {} : { role }), cluster: cluster.name, ...said };
}

/** A finding as JSON has it; the file stands beside the list. */
export const toProblem = ({ severity, code, path, line, column, message, hint }: Finding): object => ({
  severity,
  code,
  path,
  line,
  column,
  message,
  hint,
});

export function showAsText({ file, findings, omitted, document }: Validated): string {
  const lines = findings.map(formatFinding);
  const name = file === "-" ? "standard input" : visible(file);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const count = omitted > 0 ? `more than ${MOST_FINDINGS}` : String(errors);
  if (document === undefined) lines.push(`${name}: not valid: ${count} ${count === "1" ? "problem" : "problems"}`);
  else lines.push(`${name}: valid: ${document.role ?? "no role yet"} of cluster ${document.cluster.name}`);
  return `${lines.join("\n")}\n`;
}
