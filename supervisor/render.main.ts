/** `corium render`: every file that a document makes of a node, without a node. Resolves no secret, changes nothing. */
import { parseIp } from "../config/ip.ts";
import { isDnsName } from "../config/names.ts";
import { addressesToRecord } from "../k0s/addresses.ts";
import type { Command } from "../kit/command.ts";
import { formatFinding } from "../kit/finding.ts";
import { loadDocument } from "./offline.main.ts";
import { type OfflineSpec, readArguments, showData } from "./offline-arguments.ts";
import { renderNode, type RenderedNode } from "../provision/render.ts";

/** A stand-in that is told from a real one at first sight. */
const NO_MACHINE_ID = "00000000000000000000000000000000";

const RENDER: OfflineSpec = {
  name: "render",
  operands: "FILE | -",
  summary: "Prints every file that the document makes of a node, with placeholders for secrets.",
  options: [
    {
      name: "hostname",
      value: "NAME",
      help: "the node's present name, where the document gives none",
      problem: (value) => (isDnsName(value) ? undefined : "is no host name"),
    },
    {
      name: "machine-id",
      value: "ID",
      help: "32 hexadecimal digits",
      problem: (value) => (/^[0-9a-f]{32}$/.test(value) ? undefined : "is no machine id: wanted 32 hexadecimal digits"),
    },
    {
      name: "address",
      value: "IP",
      help: "the node's own address",
      problem: (value) => (parseIp(value) === undefined ? "is no IP address" : undefined),
    },
  ],
  count: [1, 1],
};

export const renderCommand: Command = async (argv, io) => {
  const given = readArguments(argv, io, RENDER);
  if (typeof given === "number") return given;
  const { positionals, output, values } = given;
  const [file = ""] = positionals;
  const { hostname = "", "machine-id": machineId = NO_MACHINE_ID, address } = values;
  const { findings, document } = await loadDocument(file, io);
  for (const finding of findings) io.err(`${formatFinding(finding)}\n`);
  if (document === undefined) return 1;
  const rendered = renderNode({ document, hostname, machineId, addresses: addressesToRecord(document, address) });
  // What the document itself writes was said with its place; the rest is wrong for want of something of the node.
  const isSaid = (path: string): boolean => findings.some((finding) => finding.path === path);
  for (const finding of rendered.findings) {
    if (!isSaid(finding.path)) io.err(`${formatFinding({ ...finding, file })}\n`);
  }
  io.out(output === "text" ? renderText(rendered) : showData(renderData(rendered), output));
  return 0;
};

const octal = (mode: number): string => `0${mode.toString(8).padStart(3, "0")}`;

export function renderData({ files, argv, units }: RenderedNode): object {
  const byPath = files.map(({ path, mode, content }) => [path, { mode: octal(mode), content }] as const);
  return { files: Object.fromEntries(byPath), argv, units };
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
