/** The gate's cases on a machine: each baseline is put into its database, and each proposal asked of its live API. */
import { parseDocument } from "../../../config/load.ts";
import { mayBeSeveral } from "../../../apply/cluster-content.ts";
import type { DiffCase } from "../../support/diff-cases.ts";
import type { Shell } from "./shell.ts";

export interface Answered {
  readonly status: number;
  readonly body: unknown;
}

const AT_ONCE = 10;

const SCRIPT = `
import { Database } from "bun:sqlite";
const cases = JSON.parse(await Bun.file("/run/.cases.json").text());
const db = new Database("/var/lib/corium/corium.db");
db.exec("PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON");
const before = db.query("SELECT document_id, addresses FROM baseline").get();
const add = db.query("INSERT INTO documents (at_ms, requester, origin, sha256, text) VALUES (?, ?, 'case', ?, ?) RETURNING id");
const run = db.query("UPDATE baseline SET document_id = ?, addresses = ?");
const answers = [];
try {
  for (const { baseline, body } of cases) {
    const sha256 = new Bun.CryptoHasher("sha256").update(baseline).digest("hex");
    run.run(add.get(Date.now(), '{"kind":"document"}', sha256, baseline).id, "{}");
    const answer = await fetch("http://node/v1/config?dryRun=true", {
      unix: "/run/corium/api.sock",
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    answers.push({ status: answer.status, body: await answer.json() });
  }
} finally {
  run.run(before.document_id, before.addresses);
  db.query("DELETE FROM documents WHERE origin = 'case'").run();
}
console.log(JSON.stringify(answers));
`;

/** A node alone takes no cluster content where there may be other controllers. */
function bodyOf({ proposal }: DiffCase): unknown {
  const { document } = parseDocument(proposal, { nowMs: Date.now() });
  const coordinated = document !== undefined && mayBeSeveral(document);
  return { document: proposal, ...(coordinated ? { coordinated } : {}) };
}

/** In the order of the cases. The node's own baseline is there again afterwards. */
export async function askGate(shell: Shell, cases: readonly DiffCase[]): Promise<readonly Answered[]> {
  const answers: Answered[] = [];
  for (let at = 0; at < cases.length; at += AT_ONCE) {
    const some = cases.slice(at, at + AT_ONCE).map((one) => ({ baseline: one.baseline, body: bodyOf(one) }));
    const script = `cat >/run/.cases.json <<'END'
${JSON.stringify(some)}
END
cat >/run/.cases.js <<'END'
${SCRIPT}
END
BUN_BE_BUN=1 /usr/bin/corium --config=/dev/null run --no-install --no-env-file /run/.cases.js`;
    answers.push(...(JSON.parse(await shell.must(script, 300_000)) as readonly Answered[]));
  }
  return answers;
}
