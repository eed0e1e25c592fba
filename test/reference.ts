/** `bun test/reference.ts [--check]`: docs/reference from the schema and the catalogue of findings. */
import { join } from "node:path";
import { explainAll, type Explanation } from "../config/explain.ts";
import { CODES } from "../config/messages/codes.ts";
import { classOf } from "../supervisor/field-class.ts";

const folder = join(import.meta.dir, "../docs/reference");
const MADE = "Made by `bun test/reference.ts`; don't edit.";

export function referencePages(): Readonly<Record<string, string>> {
  return {
    "document.md": documentPage(),
    "findings.md": findingsPage(),
  };
}

function documentPage(): string {
  const all = explainAll();
  const roots = all.filter(({ pattern }) => !pattern.includes(".") && !pattern.includes("[]"));
  const sections = roots.map((root) => {
    const below = all.filter(
      ({ pattern }) => pattern.startsWith(`${root.pattern}.`) || pattern.startsWith(`${root.pattern}[]`),
    );
    return `## ${root.pattern}\n\n${root.description} (${root.kind})\n${below.length === 0 ? "" : `\n${table(root, below)}\n`}`;
  });
  return `# The document

Every field. \`corium explain FIELD\` says the same on a terminal. _In service_ is what \`cctl apply\` does with a change on
a node that runs: safe and host are applied, guarded needs a confirmation, spent has no effect any more, immutable and
own-verb are refused. ${MADE}

${sections.join("\n")}`;
}

function table(root: Explanation, rows: readonly Explanation[]): string {
  const cells = rows.map((row) => [
    `\`${row.pattern.slice(root.pattern.length).replace(/^(?:\[\])?\./, "")}\``,
    row.kind.replaceAll("|", "\\|"),
    row.isRequired ? "required" : row.default === undefined ? "" : `\`${JSON.stringify(row.default)}\``,
    classOf(row.pattern) ?? "",
    row.description.replaceAll("|", "\\|"),
  ]);
  return markdown(["field", "kind", "default", "in service", "what it is"], cells);
}

function findingsPage(): string {
  const rows = Object.entries(CODES).map(([code, { severity, meaning }]) => [`\`${code}\``, severity, meaning]);
  return `# Findings

What \`corium validate\`, the API and the node say about a document. A code keeps its meaning for ever. ${MADE}

${markdown(["code", "severity", "meaning"], rows)}
`;
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
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
