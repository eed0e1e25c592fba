/** The fenced blocks of the guides: what kind each is, and its lines. */
import { join } from "node:path";

export const root = join(import.meta.dir, "../..");

/** Every page for people; architecture.md and the generated pages have tests of their own. */
export const guides = ["README.md", "docs/first-node.md", "docs/cctl.md"] as const;

/** Those, and pages without commands to follow. */
export const pages = [...guides, "docs/overlay-and-ha.md", "docs/handover.md"] as const;

export interface Block {
  readonly page: string;
  readonly line: number;
  /** `sh` is run by a test, `yaml` is a valid document (`file=` saves it), `text` is example output. */
  readonly kind: string;
  readonly file?: string;
  readonly text: string;
}

export function blocksOf(page: string, source: string): readonly Block[] {
  const blocks: Block[] = [];
  for (const match of source.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)) {
    const [kind = "", ...rest] = (match[1] ?? "").trim().split(" ");
    const file = rest.find((word) => word.startsWith("file="))?.slice(5);
    const line = source.slice(0, match.index).split("\n").length;
    blocks.push({ page, line, kind, text: match[2] ?? "", ...(file === undefined ? {} : { file }) });
  }
  return blocks;
}

export async function readGuide(page: string): Promise<readonly Block[]> {
  return blocksOf(page, await Bun.file(join(root, page)).text());
}

/** One command a line; no quoting is needed in a guide, so that people can type it. */
export const commandsOf = (block: Block): readonly (readonly string[])[] =>
  block.text
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"))
    .map((line) => line.trim().split(/\s+/));
