/** `bun test/reference.ts [--check]`: docs/reference from the schema, the catalogue of findings and the table of routes. */
import { join } from "node:path";
import { stringify } from "yaml";
import { API_PORT } from "../api/contract.ts";
import { FREE_TRIES, SLOW_TRY_MS } from "../api/enrolment.ts";
import { LIMITS } from "../api/listener.ts";
import { DOCUMENT_BODY_BYTES, SMALL_BODY_BYTES } from "../api/route.ts";
import { ROUTES } from "../api/routes/all.ts";
import { explainAll, type Explanation } from "../config/explain.ts";
import { CODES } from "../config/messages/codes.ts";
import { PLANNING_CODES } from "../provision/finding-codes.ts";
import { NOT_IN_RELEASE } from "../provision/storage.ts";
import { CLASS_MEANING } from "../supervisor/explain-text.ts";
import { classOf } from "../supervisor/field-class.ts";
import { exampleRows } from "./support/examples.ts";
import { sampleProblems } from "./support/message-samples.ts";

const folder = join(import.meta.dir, "../docs/reference");
const MADE = "Made by `bun test/reference.ts`; don't edit.";

export function referencePages(): Readonly<Record<string, string>> {
  return {
    "document.md": documentPage(),
    "findings.md": findingsPage(),
    "api.md": apiPage(),
    "../examples/README.md": examplesPage(),
  };
}

function documentPage(): string {
  const all = explainAll();
  const roots = all.filter(({ pattern }) => !pattern.includes(".") && !pattern.includes("[]"));
  const sections = roots.map((root) => {
    const below = all.filter(
      ({ pattern }) => pattern.startsWith(`${root.pattern}.`) || pattern.startsWith(`${root.pattern}[]`),
    );
    const parts = [
      `## ${root.pattern}`,
      about(root),
      exampleOf(root),
      ...(below.length === 0 ? [] : [table(root, below)]),
    ];
    return parts.join("\n\n");
  });
  const classes = Object.entries(CLASS_MEANING).map(([name, meaning]) => [`\`${name}\``, meaning]);
  return `# The document

Every field, with an example of each block. \`corium explain FIELD\` says the same on a terminal, and \`corium schema\`
prints it for editors. [Whole documents](../examples/README.md) show how the fields go together. ${MADE}

Blocks: ${roots.map(({ pattern }) => `[${pattern}](#${pattern.toLowerCase()})`).join(", ")}.

_In service_ is what \`cctl apply\` does with a change on a node that runs:

${markdown(["class", "a change"], classes)}

${sections.join("\n\n")}
`;
}

const about = (field: Explanation): string =>
  [
    `${field.description} _${field.kind}_${field.isRequired ? ", required" : ""}.`,
    ...(field.rule === undefined ? [] : [`Rule: ${field.rule}.`]),
    `In service: ${classOf(field.pattern) ?? "see its fields"}. Since ${field.since}.`,
  ].join(" ");

const exampleOf = (root: Explanation): string =>
  `\`\`\`yaml\n${stringify({ [root.pattern]: root.examples[0] }, { lineWidth: 0 })}\`\`\``;

function table(root: Explanation, rows: readonly Explanation[]): string {
  const cells = rows.map((row) => [
    `\`${row.pattern.slice(root.pattern.length).replace(/^(?:\[\])?\./, "")}\``,
    row.kind,
    row.isRequired ? "required" : row.default === undefined ? "" : `\`${JSON.stringify(row.default)}\``,
    `${row.rule ?? ""}${row.isSecret ? " (a secret)" : ""}`.trim(),
    classOf(row.pattern) ?? "",
    row.since,
    row.description,
  ]);
  return markdown(["field", "type", "default", "rule", "in service", "since", "what it is"], cells);
}

function findingsPage(): string {
  const codes = Object.entries(CODES).map(([code, { severity, meaning }]) => [
    `[\`${code}\`](#${code})`,
    severity,
    meaning,
  ]);
  const sections = Object.entries(CODES).map(([code, { severity, meaning }]) => {
    const messages = sampleProblems
      .filter((problem) => problem.code === code)
      .map(({ message, hint }) => [message, hint ?? ""] as const);
    const title = `### ${code}\n\nAs ${severity === "error" ? "an error" : "a warning"}: ${meaning}.`;
    return `${title}\n\n${markdown(["message", "cure"], messages)}`;
  });
  return `# Findings

What \`corium validate\`, the API and the node say about a document. A code keeps its meaning for ever. ${MADE}

    node.yaml:3:3: error: cluster.nmae: unknown key "nmae"
      hint: did you mean "name"?

File, line and column (both from 1; columns as editors count them), severity, the field, what is wrong; then the cure.
With \`--output json\` these are \`severity code path line column message hint\`. An error refuses the document as a
whole; a warning doesn't. Secrets are in none of them.

${markdown(["code", "severity", "meaning"], codes)}

## Messages

With values as they might stand there.

${sections.join("\n\n")}

## On a node

What a node adds when it plans an installation or its first boot: the document is valid, the machine is the question.

${markdown(
  ["code", "meaning", "cure"],
  Object.entries(PLANNING_CODES).map(([code, { meaning, cure }]) => [`\`${code}\``, meaning, cure]),
)}
`;
}

function examplesPage(): string {
  return `# Examples

Whole documents, each of a situation that somebody stands in. The comments say why a line is there and which trap it
avoids. Names, addresses, serial numbers, keys and certificates in them are made up: put your own in their place, then

    corium validate FILE      whether it is valid, with the line and the cure
    corium render FILE        every file that it makes of a node

Fields one by one: [reference](../reference/document.md). ${MADE}

${markdown(["document", "situation", "role", "blocks", "lines"], exampleRows())}

An image refuses what it does not carry out with the code \`not-in-release\` ([findings](../reference/findings.md)), before
anything is changed. For this release that is: ${NOT_IN_RELEASE.map((kind) => `\`${kind}\``).join(", ")}.
`;
}

function apiPage(): string {
  const rows = ROUTES.map((route) => [
    `${route.method} \`${route.path.replaceAll(/:(\w+)/g, "{$1}")}\``,
    route.role,
    route.summary,
    (route.query ?? []).map(({ name, description }) => `\`${name}\`: ${description}`).join("; "),
  ]);
  const bounds = [
    ["request head", `${LIMITS.headMs / 1000} s, ${LIMITS.headBytes / 1024} KiB`],
    [
      "request body",
      `${LIMITS.bodyMs / 1000} s; ${SMALL_BODY_BYTES / 1024} KiB, documents ${DOCUMENT_BODY_BYTES / 1024} KiB`,
    ],
    ["idle connection", `${LIMITS.idleMs / 1000} s`],
    ["reader that takes nothing", `${LIMITS.slowReaderMs / 1000} s`],
    ["connections", `${LIMITS.connections}, of which ${LIMITS.keptForAuthenticated} are kept for operators`],
    ["requests at once of one client", `${LIMITS.inFlightPerClient}; health always answers`],
    ["wrong claim codes", `${FREE_TRIES}, then one try in ${SLOW_TRY_MS / 1000} s for everybody together`],
  ];
  return `# The API

HTTPS with TLS 1.3 on port ${API_PORT}, and the same routes on the root-only socket \`/run/corium/api.sock\`. A role includes
the ones before it: readonly, operator, admin. \`GET /v1/openapi.json\` says the same for programs.
${MADE}

An unclaimed node answers \`POST /v1/enroll\` (code, operator CA, perhaps a document) and 409 "claim first" to all else.
A refusal is \`{error, reason?, problems?, refused?, operation?}\`, with 400 (wrong), 401 (certificate), 403 (role), 404, 405,
408, 409 (not now, or never on this node), 412 (somebody applied in between), 413, 415, 429 or 503 (state, systemd).

${markdown(["route", "role", "what it does", "query"], rows)}

## Bounds

${markdown(["of", "is"], bounds)}
`;
}

function markdown(head: readonly string[], given: readonly (readonly string[])[]): string {
  const rows = given.map((cells) => cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("<", "&lt;")));
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((row) => Bun.stringWidth(row[column] ?? ""))),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell))).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

export async function outdatedPages(): Promise<readonly string[]> {
  const outdated: string[] = [];
  for (const [name, text] of Object.entries(referencePages())) {
    const file = Bun.file(join(folder, name));
    if (!(await file.exists()) || (await file.text()) !== text) outdated.push(name);
  }
  return outdated;
}

if (import.meta.main) {
  if (process.argv[2] === "--check") {
    const outdated = await outdatedPages();
    for (const name of outdated)
      process.stderr.write(`docs/reference/${name} is out of date: run bun test/reference.ts\n`);
    process.exitCode = outdated.length > 0 ? 1 : 0;
  } else {
    for (const [name, text] of Object.entries(referencePages())) await Bun.write(join(folder, name), text);
  }
}
