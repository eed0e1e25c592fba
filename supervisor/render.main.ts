/** `corium render`: every file that a document makes of a node, without a node. Resolves no secret, changes nothing. */
import { parseArgs } from "node:util";
import { addressesToRecord } from "../k0s/addresses.ts";
import type { Command } from "../kit/command.ts";
import { formatFinding } from "../kit/finding.ts";
import { isHelp, loadDocument } from "./offline.main.ts";
import { renderNode, type RenderedNode } from "../provision/render.ts";

const USAGE = "usage: corium render [--output json] [--hostname NAME] [--machine-id ID] [--address IP] FILE|-\n";

/** A stand-in that is told from a real one at first sight. */
const NO_MACHINE_ID = "00000000000000000000000000000000";

export const renderCommand: Command = async (argv, io) => {
  if (isHelp(argv)) return (io.out(USAGE), 0);
  const options = readOptions(argv);
  if (options === undefined) {
    io.err(USAGE);
    return 2;
  }
  const { file, hostname, machineId, address, isJson } = options;
  const { findings, document } = await loadDocument(file, io);
  for (const finding of findings) io.err(`${formatFinding(finding)}\n`);
  if (document === undefined) return 1;
  const rendered = renderNode({ document, hostname, machineId, addresses: addressesToRecord(document, address) });
  // What the document itself writes was said with its place; the rest is wrong for want of something of the node.
  const isSaid = (path: string): boolean => findings.some((finding) => finding.path === path);
  for (const finding of rendered.findings) {
    if (!isSaid(finding.path)) io.err(`${formatFinding({ ...finding, file })}\n`);
  }
  io.out(isJson ? renderJson(rendered) : renderText(rendered));
  return 0;
};

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

export function renderJson({ files, argv, units }: RenderedNode): string {
  const byPath = files.map(({ path, mode, content }) => [path, { mode: octal(mode), content }] as const);
  return `${JSON.stringify({ files: Object.fromEntries(byPath), argv, units }, null, 2)}\n`;
}

/** As a shell would want it: quoted only where needed, to be read and not to be pasted blindly. */
const shellWord = (word: string): string =>
  /^[\w@%+=:,./<>-]+$/.test(word) && word !== "" ? word : `'${word.replaceAll("'", `'\\''`)}'`;

export function renderText({ files, argv, units }: RenderedNode): string {
  const parts = files.map(({ path, mode, content }) => {
    const end = content.endsWith("\n") ? "" : "\n";
    return `==> ${path} (${octal(mode)})\n${content}${end}`;
  });
  if (argv.length > 0) parts.push(`==> commands\n${argv.map((line) => `${line.map(shellWord).join(" ")}\n`).join("")}`);
  if (units.length > 0) parts.push(`==> units\n${units.map((unit) => `${unit}\n`).join("")}`);
  return parts.join("\n");
}
