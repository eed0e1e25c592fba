/** `corium render`: every file that a document makes of a node, without a node. Resolves no secret, changes nothing. */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import type { Document } from "../config/document.ts";
import { parseDocument } from "../config/load.ts";
import { listedK0sVersions } from "../iso/k0s-lock.ts";
import { addressesToRecord } from "../k0s/addresses.ts";
import type { Command, CommandIo } from "../kit/command.ts";
import { formatFinding } from "../kit/finding.ts";
import { renderNode, type RenderedNode } from "../provision/render.ts";

const USAGE = "usage: corium render [--output json] [--hostname NAME] [--machine-id ID] [--address IP] FILE|-\n";

/** A stand-in that is told from a real one at first sight. */
const NO_MACHINE_ID = "00000000000000000000000000000000";

export const renderCommand: Command = async (argv, io) => {
  const options = readOptions(argv);
  if (options === undefined) {
    io.err(USAGE);
    return 2;
  }
  const { file, hostname, machineId, address, isJson } = options;
  const document = await readDocument(file, io);
  if (document === undefined) return 1;
  const rendered = renderNode({ document, hostname, machineId, addresses: addressesToRecord(document, address) });
  for (const finding of rendered.findings) io.err(`${formatFinding({ ...finding, file })}\n`);
  io.out(isJson ? renderJson(rendered) : renderText(rendered));
  return 0;
};

/** Says its problems on stderr, as `corium validate` does; undefined when there is no valid document. */
export async function readDocument(file: string, io: CommandIo): Promise<Document | undefined> {
  let text: string | Uint8Array;
  try {
    text = file === "-" ? await io.readStdin() : await readFile(file);
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    io.err(`${file}: cannot be read (${reason})\n`);
    return undefined;
  }
  const name = file === "-" ? "stdin" : file;
  const { findings, document } = parseDocument(text, { file: name, nowMs: Date.now(), k0sVersions: listedK0sVersions });
  for (const finding of findings) io.err(`${formatFinding(finding)}\n`);
  return document;
}

interface Options {
  readonly file: string;
  readonly hostname: string;
  readonly machineId: string;
  readonly address: string | undefined;
  readonly isJson: boolean;
}

function readOptions(argv: readonly string[]): Options | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        output: { type: "string", default: "text" },
        hostname: { type: "string", default: "" },
        "machine-id": { type: "string", default: NO_MACHINE_ID },
        address: { type: "string" },
      },
    });
    const [file, ...others] = positionals;
    if (file === undefined || others.length > 0) return undefined;
    if (values.output !== "json" && values.output !== "text") return undefined;
    const { hostname, address, output } = values;
    return { file, hostname, machineId: values["machine-id"], address, isJson: output === "json" };
  } catch {
    return undefined;
  }
}

const octal = (mode: number): string => `0${mode.toString(8).padStart(3, "0")}`;

function renderJson({ files, argv, units }: RenderedNode): string {
  const byPath = files.map(({ path, mode, content }) => [path, { mode: octal(mode), content }] as const);
  return `${JSON.stringify({ files: Object.fromEntries(byPath), argv, units }, null, 2)}\n`;
}

/** As a shell would want it: quoted only where needed, to be read and not to be pasted blindly. */
const shellWord = (word: string): string =>
  /^[\w@%+=:,./<>-]+$/.test(word) && word !== "" ? word : `'${word.replaceAll("'", `'\\''`)}'`;

function renderText({ files, argv, units }: RenderedNode): string {
  const parts = files.map(({ path, mode, content }) => {
    const end = content.endsWith("\n") ? "" : "\n";
    return `==> ${path} (${octal(mode)})\n${content}${end}`;
  });
  if (argv.length > 0) parts.push(`==> commands\n${argv.map((line) => `${line.map(shellWord).join(" ")}\n`).join("")}`);
  if (units.length > 0) parts.push(`==> units\n${units.map((unit) => `${unit}\n`).join("")}`);
  return parts.join("\n");
}
