/** Who is calling: decided anew for every request, from the certificate of the connection and what is pinned now. */
import type { AppError } from "../kit/app-error.ts";
import { appError } from "../kit/app-error.ts";
import type { OperatorRole } from "../kit/operator-role.ts";
import type { Clock } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import type { Authority } from "../pki/authority.ts";
import { parseAuthority } from "../pki/authority.ts";
import type { ClientIdentity } from "../pki/model.ts";
import { checkStanding, readClient } from "../pki/verify.ts";
import type { Requester } from "../state/model.ts";
import type { State } from "../state/open.ts";
import { isSqliteError } from "../state/sqlite.ts";

export type Caller =
  /** The Unix socket: root. */
  | { readonly kind: "local"; readonly role: OperatorRole; readonly requester: Requester }
  | {
      readonly kind: "operator";
      readonly role: OperatorRole;
      readonly requester: Requester;
      /** The certificate is of the CA that waits to take the place of the pinned one. */
      readonly isOfNewCa?: true;
    }
  /** A good certificate whose subject names no role. */
  | { readonly kind: "no-role"; readonly name: string; readonly fingerprint: string }
  /** Claimed node, bad or no certificate. */
  | { readonly kind: "refused"; readonly error: AppError }
  /** Nobody's node: certificates mean nothing yet. */
  | { readonly kind: "unclaimed" }
  /** Whose node it is can't be read: nobody is let in on a guess. */
  | { readonly kind: "undecided"; readonly error: AppError };

export const localCaller = (kind: "local" | "console"): Caller => ({
  kind: "local",
  role: "admin",
  requester: { kind },
});

/** What a connection showed; the verdict on its signature is kept with the CAs that it was given by. */
export interface Credentials {
  readonly certificate?: Uint8Array;
  readonly address: string;
  verdict?: Verdict;
}

interface Verdict {
  readonly of: Obeyed;
  /** Of the one that issued it; of the pinned one where none did. */
  readonly authority: Authority;
  readonly identity: Result<ClientIdentity, AppError>;
}

/** While a new CA waits to be confirmed, both are obeyed. */
interface Obeyed {
  readonly pinned: Authority;
  readonly incoming?: Authority;
}

export type Door = (credentials: Credentials) => Caller;

/** `newCa`: PEM of the one that waits to be confirmed. */
export function createDoor(state: State, clock: Clock, newCa: () => string | undefined = () => undefined): Door {
  let last: Obeyed | undefined;
  const obeyed = (): Obeyed | undefined => {
    const claim = state.claim.get();
    if (claim === undefined) return (last = undefined);
    const incoming = newCa();
    if (last?.pinned.pem !== claim.operatorCA || last.incoming?.pem !== incoming) {
      const pinned = read(claim.operatorCA);
      last = incoming === undefined ? { pinned } : { pinned, incoming: read(incoming) };
    }
    return last;
  };

  const decide = (credentials: Credentials): Caller => {
    const cas = obeyed();
    if (cas === undefined) return { kind: "unclaimed" };
    const verdict = verdictOn(credentials, cas);
    if (!verdict.ok) return { kind: "refused", error: verdict.error };
    const { authority, identity } = verdict.value;
    if (!identity.ok) return { kind: "refused", error: identity.error };
    const standing = checkStanding(identity.value, authority, {
      nowMs: Math.max(clock.nowMs(), state.meta.timeFloorMs()),
      isRevoked: (issuer, serial) => state.claim.isRevoked(issuer, serial),
    });
    if (!standing.ok) return { kind: "refused", error: standing.error };
    const { name, role, fingerprint } = identity.value;
    if (role === undefined) return { kind: "no-role", name, fingerprint };
    return {
      kind: "operator",
      role,
      requester: { kind: "operator", name, role, fingerprint, address: credentials.address },
      ...(authority === cas.incoming ? { isOfNewCa: true } : {}),
    };
  };
  return (credentials) => {
    try {
      return decide(credentials);
    } catch (thrown) {
      if (thrown instanceof UnreadableAuthority) return { kind: "undecided", error: thrown.reason };
      if (!isSqliteError(thrown)) throw thrown;
      const message = `the state database can't be read (${thrown.code}); Kubernetes keeps running`;
      return { kind: "undecided", error: appError("state", message) };
    }
  };
}

function read(pem: string): Authority {
  const parsed = parseAuthority(pem);
  if (!parsed.ok) throw new UnreadableAuthority(parsed.error);
  return parsed.value;
}

/** It was checked before it was recorded; unreadable now, it must let nobody in. */
class UnreadableAuthority extends Error {
  readonly reason: AppError;

  constructor(cause: AppError) {
    super(cause.message);
    this.reason = appError("pinned-ca", "the pinned operator CA can't be read", { cause });
  }
}

/** The new CA first: one that keeps its key issues what both of them have issued. */
function verdictOn(credentials: Credentials, of: Obeyed): Result<Verdict, AppError> {
  const { certificate, verdict } = credentials;
  if (certificate === undefined) {
    return err(
      appError("no-certificate", "no client certificate was presented", { hint: "use the one of `cctl pki issue`" }),
    );
  }
  if (verdict?.of === of) return ok(verdict);
  const byNew = of.incoming === undefined ? undefined : readClient(certificate, of.incoming);
  const given: Verdict =
    of.incoming !== undefined && byNew?.ok === true
      ? { of, authority: of.incoming, identity: byNew }
      : { of, authority: of.pinned, identity: readClient(certificate, of.pinned) };
  credentials.verdict = given;
  return ok(given);
}
