import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { Claim } from "./model.ts";
import type { Database } from "./sqlite.ts";

/** Who may command the node. Only an operator of a new CA that was let in replaces a claim; re-keying at the rescue menu forgets it. */
export interface ClaimRepository {
  get(): Claim | undefined;
  /** `claimed` when there is one already; of two at once exactly one wins. */
  record(claim: Claim): Result<void, AppError>;
  /** A rotation: the node was claimed, and is by another CA from now on. */
  replace(claim: Claim): void;
  forget(): void;
  revoke(issuer: string, serial: string, atMs: number): void;
  isRevoked(issuer: string, serial: string): boolean;
}

interface Row {
  readonly operator_ca: string;
  readonly fingerprint: string;
  readonly at_ms: number;
  readonly claimed_by: Claim["by"];
}

export function claimIn(database: Database): ClaimRepository {
  const select = database.prepare<[], Row>("SELECT * FROM claim");
  const insert = database.prepare(
    "INSERT INTO claim (id, operator_ca, fingerprint, at_ms, claimed_by) VALUES (1, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const update = database.prepare("UPDATE claim SET operator_ca = ?, fingerprint = ?, at_ms = ?, claimed_by = ?");
  const remove = database.prepare("DELETE FROM claim");
  const revoke = database.prepare(
    "INSERT INTO revoked (issuer, serial, at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const revoked = database.prepare<[string, string], { 1: number }>(
    "SELECT 1 FROM revoked WHERE issuer = ? AND serial = ?",
  );
  return {
    get() {
      const row = select.get();
      if (row === undefined) return undefined;
      return { operatorCA: row.operator_ca, fingerprint: row.fingerprint, atMs: row.at_ms, by: row.claimed_by };
    },
    record({ operatorCA, fingerprint, atMs, by }) {
      return insert.run(operatorCA, fingerprint, atMs, by).changes === 1
        ? ok(undefined)
        : fail("claimed", "this node is claimed already");
    },
    replace: ({ operatorCA, fingerprint, atMs, by }) => void update.run(operatorCA, fingerprint, atMs, by),
    forget: () => void remove.run(),
    revoke: (issuer, serial, atMs) => void revoke.run(issuer, serial.toLowerCase(), atMs),
    isRevoked: (issuer, serial) => revoked.get(issuer, serial.toLowerCase()) !== undefined,
  };
}
