/**
 * What an operator types and sees, compared with a page in testdata/. `CORIUM_GOLDEN=write bun test test/stories`
 * writes the pages anew; read the difference before it is committed.
 */
import { expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FakeHost } from "../support/fake-host.ts";
import { type Ran, type RunOptions, runCctl } from "../support/run-cctl.ts";
import type { StoryNode } from "./story-node.ts";

export interface Transcript {
  readonly type: (line: string, options?: RunOptions) => Promise<Ran>;
  /** A remark between the commands: what happened meanwhile. */
  readonly note: (text: string) => void;
  /** Everything printed so far, with nothing replaced. */
  readonly raw: () => string;
  readonly check: (name: string) => void;
}

export function transcript(operator: FakeHost, node: StoryNode): Transcript {
  let page = "";
  let raw = "";
  return {
    async type(line, options = {}) {
      const typed = line.replaceAll("ADDRESS", node.address).replaceAll("FINGERPRINT", node.fingerprint);
      const code = node.code();
      const argv = typed.replaceAll("CODE", code).split(" ");
      const ran = await runCctl(operator, argv, options);
      raw += ran.all;
      page += `$ cctl ${line}\n${stable(code === "" ? ran.all : ran.all.replaceAll(code, "CODE"), node)}[exit ${ran.status}]\n\n`;
      return ran;
    },
    note: (text) => void (page += `# ${text}\n\n`),
    raw: () => raw,
    check(name) {
      const file = join(import.meta.dir, "testdata", `${name}.txt`);
      if (process.env["CORIUM_GOLDEN"] === "write") writeFileSync(file, page);
      expect(page).toBe(existsSync(file) ? readFileSync(file, "utf8") : "");
    },
  };
}

/** What differs from run to run gets a name. */
function stable(text: string, node: StoryNode): string {
  return (
    text
      // What a progress line shows is a matter of luck.
      // oxlint-disable-next-line no-control-regex
      .replace(/\r\u001b\[K(\d+s {2}[^\r\n]*)?/g, "")
      .replaceAll(node.address, "ADDRESS")
      .replaceAll(node.fingerprint, "FINGERPRINT")
      .replace(/SHA256:[A-Za-z0-9+/]{43}/g, "SHA256:…")
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, "TIME")
      .replace(/^\d+ {2}TIME/gm, "SEQ  TIME")
      .replace(/, up \S+$/gm, ", up UPTIME")
      .replace(/until \d{4}-\d\d-\d\d/g, "until DAY")
      .replace(/\d+\.\d s$/gm, "0.0 s")
      .replace(operationIds(node), "OPERATION")
  );
}

function operationIds({ state }: StoryNode): RegExp {
  const ids = state.operations.list().map(({ id }) => id.replace(/[^\w-]/g, "."));
  return new RegExp(ids.length === 0 ? "(?!)" : ids.join("|"), "g");
}
