/**
 * Every command of the guides, typed in their order. cctl talks to a story node that stands at the guides' address;
 * `corium` runs as it is. `./dev` is what runs this test, so it is not run again.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FakeHost, fakeHost } from "../support/fake-host.ts";
import { commandsOf, guides, readGuide, root } from "../support/guides.ts";
import { runCctl } from "../support/run-cctl.ts";
import { type StoryNode, startStoryNode } from "./story-node.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const shownAddress = "10.0.0.5";

let node: StoryNode;
let operator: FakeHost;
let folder: string;

beforeEach(async () => {
  node = await startStoryNode();
  operator = fakeHost({ nowMs: Date.now() });
  folder = mkdtempSync(join(tmpdir(), "corium-guide-"));
});
afterEach(async () => {
  await node.close();
  rmSync(folder, { recursive: true });
});

function save(name: string, text: string): void {
  operator.put(name, text);
  writeFileSync(join(folder, name), text);
}

async function corium(argv: readonly string[]): Promise<{ status: number; all: string }> {
  const child = Bun.spawn([process.execPath, join(root, "main.ts"), ...argv], {
    cwd: folder,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { status, all: out + err };
}

/** What a person would answer. */
const answersTo = (word: string | undefined): readonly string[] => (word === "enroll" ? ["yes", node.code()] : ["yes"]);

/** A page that starts with an enrolled node says so; the reader has read first-node.md. */
async function enrolled(): Promise<void> {
  const code = node.code();
  await runCctl(operator, ["pki", "init"]);
  const argv = ["enroll", node.address, "--code", code, "--fingerprint", node.fingerprint, "--name", "node1"];
  expect((await runCctl(operator, argv)).status).toBe(0);
  save("node.yaml", "role: single\nnode:\n  name: node1\n");
  node.bootstrap("role: single\nnode:\n  name: node1\n");
  save("node.yaml", "role: single\nnode:\n  name: node1\nupgrades:\n  automatic: download\n");
}

/** `diff` exits 5 when there is a difference, as the guides' always is. */
const wantedStatus = (argv: readonly string[]): number => (argv[0] === "diff" ? 5 : 0);

describe("the guides are followed", () => {
  for (const page of guides) {
    test(page, async () => {
      const text = await Bun.file(join(root, page)).text();
      if (text.includes("enrolled as `node1`")) await enrolled();
      let count = 0;
      for (const block of await readGuide(page)) {
        if (block.kind === "yaml" && block.file !== undefined) save(block.file, block.text);
        for (const [program, ...argv] of block.kind === "sh" ? commandsOf(block) : []) {
          if (program === "./dev") continue;
          const line = [program, ...argv].join(" ");
          const typed = argv.map((word) => word.replace(shownAddress, node.address));
          const answers = answersTo(argv[0]);
          const ran = program === "corium" ? await corium(argv) : await runCctl(operator, typed, { answers });
          const place = `${page}:${block.line}: ${line}`;
          expect([place, ran.status === wantedStatus(argv) ? "" : ran.all]).toEqual([place, ""]);
          count += 1;
          // A real node does this by itself, once it is claimed with a document.
          if (argv[0] === "enroll") node.bootstrap(operator.text("node.yaml") ?? "");
        }
      }
      expect(count).toBeGreaterThan(2);
    });
  }
});
