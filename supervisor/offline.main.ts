/** Commands that work anywhere, with the very code that runs on the node: validate, schema, explain. */
import { open } from "node:fs/promises";
import { parseArgs } from "node:util";
import type { Command, CommandIo } from "../kit/command.ts";
import type { Finding } from "../kit/finding.ts";
import type { ParsedDocument } from "../config/load.ts";
import { decodeSays } from "../config/messages/decode.ts";
import { formatFinding } from "../kit/finding.ts";
import { checkDocument } from "./check-document.ts";

const USAGE = "usage: corium validate [--output json] FILE… | -\n";

/** `--help` alone is an answer, not a wrong use. */
export function isHelp(argv: readonly string[]): boolean {
  return argv.length === 1 && (argv[0] === "--help" || argv[0] === "-h");
}

export const validateCommand: Command = async (argv, io) => {
  if (isHelp(argv)) return (io.out(USAGE), 0);
  const options = readOptions(argv);
  if (typeof options === "string") return usage(io, options);
  const { files, isJson } = options;
  const results = [];
  for (const file of files) results.push({ file, ...(await loadDocument(file, io)) });
  io.out(isJson ? `${JSON.stringify(results.map(showAsJson), null, 2)}\n` : results.map(showAsText).join(""));
  return results.every(({ document }) => document !== undefined) ? 0 : 1;
};

/** A text says what is wrong. */
function readOptions(
  argv: readonly string[],
): { readonly files: readonly string[]; readonly isJson: boolean } | string {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: { output: { type: "string", short: "o", default: "text" } },
    });
    if (values.output !== "text" && values.output !== "json") return `--output is text or json, got "${values.output}"`;
    if (positionals.filter((file) => file === "-").length > 1) return "standard input can be read only once";
    if (positionals.includes("")) return "a file without a name";
    return positionals.length === 0 ? "no file given" : { files: positionals, isJson: values.output === "json" };
  } catch (error) {
    const said = error instanceof Error ? (error.message.split(/[.\n]/)[0] ?? "") : "wrong arguments";
    return said.charAt(0).toLowerCase() + said.slice(1);
  }
}

export const schemaCommand: Command = async (argv, io) => {
  if (isHelp(argv)) return (io.out("usage: corium schema\n"), 0);
  if (argv.length > 0) return usage(io, `no argument ${argv[0] ?? ""}`, "usage: corium schema\n");
  const { documentJsonSchema } = await import("../config/json-schema.ts");
  io.out(`${JSON.stringify(documentJsonSchema(), null, 2)}\n`);
  return 0;
};

export const explainCommand: Command = async (argv, io) => {
  const [field, ...more] = argv;
  const text = "usage: corium explain FIELD, e.g. wireguard.peers.endpoint\n";
  if (isHelp(argv)) return (io.out(text), 0);
  if (field === undefined || more.length > 0 || field.startsWith("-")) return usage(io, "one field wanted", text);
  const [{ explain }, { classOf }, { explainText }] = await Promise.all([
    import("../config/explain.ts"),
    import("./field-class.ts"),
    import("./explain-text.ts"),
  ]);
  const found = explain(field);
  if ("near" in found) {
    io.err(`corium: the document has no field ${JSON.stringify(field)}\n`);
    for (const name of found.near) io.err(`  did you mean ${name}?\n`);
    if (found.near.length === 0) io.err("  corium schema prints them all\n");
    return 1;
  }
  io.out(explainText(found, classOf(found.pattern)));
  return 0;
};

function usage(io: CommandIo, what: string, text = USAGE): number {
  io.err(`corium: ${what}\n${text}`);
  return 2;
}

/** The document of a file or of standard input (`-`), with all that can be said of it offline. */
export async function loadDocument(
  file: string,
  io: CommandIo,
): Promise<Pick<ParsedDocument, "findings" | "document">> {
  const name = file === "-" ? "standard input" : file;
  let content: string | Uint8Array;
  try {
    content = file === "-" ? await io.readStdin() : await readStart(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    return { findings: [{ severity: "error", path: "", ...decodeSays.unreadable(code), file: name }] };
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

export interface Validated extends Pick<ParsedDocument, "findings" | "document"> {
  readonly file: string;
}

export function showAsJson({ file, findings, document }: Validated): unknown {
  const problems = findings.map(toProblem);
  if (document === undefined) return { file, valid: false, problems };
  const { role, cluster } = document;
  return { file, valid: true, ...(role === undefined ? {} : { role }), cluster: cluster.name, problems };
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

export function showAsText({ file, findings, document }: Validated): string {
  const lines = findings.map(formatFinding);
  const name = file === "-" ? "standard input" : file;
  const errors = findings.filter(({ severity }) => severity === "error").length;
  if (document === undefined) lines.push(`${name}: not valid: ${errors} ${errors === 1 ? "problem" : "problems"}`);
  else lines.push(`${name}: valid: ${document.role ?? "no role yet"} of cluster ${document.cluster.name}`);
  return `${lines.join("\n")}\n`;
}
