import type { RecordedAddresses } from "../kit/addresses.ts";
import type { DocumentRow } from "./documents.ts";
import { toDocument } from "./documents.ts";
import type { Baseline, RenderedDigests } from "./model.ts";
import type { Database } from "./sqlite.ts";

/** What the node runs: one row, replaced as a whole. */
export interface BaselineRepository {
  get(): Baseline | undefined;
  /** The document must be one of `documents`. */
  set(baseline: Baseline): void;
}

interface Row extends Omit<DocumentRow, "at_ms"> {
  readonly document_id: number;
  readonly document_at_ms: number;
  readonly hostname: string;
  readonly machine_id: string;
  readonly addresses: string;
  readonly k0s_version: string;
  readonly input_hash: string;
  readonly render_version: number;
  readonly rendered: string;
  readonly secret_fingerprints: string;
  readonly at_ms: number;
}

export function baselineIn(database: Database): BaselineRepository {
  const select = database.prepare<[], Row>(
    `SELECT b.*, d.at_ms AS document_at_ms, d.requester, d.origin, d.sha256, d.text
     FROM baseline b JOIN documents d ON d.id = b.document_id`,
  );
  const replace = database.prepare(
    `INSERT OR REPLACE INTO baseline
       (id, document_id, hostname, machine_id, addresses, k0s_version, input_hash, render_version, rendered,
        secret_fingerprints, at_ms)
     VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return {
    get() {
      const row = select.get();
      return row === undefined ? undefined : toBaseline(row);
    },
    set: (baseline) =>
      void replace.run(
        baseline.document.id,
        baseline.hostname,
        baseline.machineId,
        JSON.stringify(baseline.addresses),
        baseline.k0sVersion,
        baseline.inputHash,
        baseline.renderVersion,
        JSON.stringify(baseline.rendered),
        JSON.stringify(baseline.secretFingerprints),
        baseline.atMs,
      ),
  };
}

function toBaseline(row: Row): Baseline {
  return {
    document: toDocument({ ...row, id: row.document_id, at_ms: row.document_at_ms }),
    hostname: row.hostname,
    machineId: row.machine_id,
    addresses: JSON.parse(row.addresses) as RecordedAddresses,
    k0sVersion: row.k0s_version,
    inputHash: row.input_hash,
    renderVersion: row.render_version,
    rendered: JSON.parse(row.rendered) as RenderedDigests,
    secretFingerprints: JSON.parse(row.secret_fingerprints) as Baseline["secretFingerprints"],
    atMs: row.at_ms,
  };
}
