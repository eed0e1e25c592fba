/** Who is calling: decided anew for every request, from the certificate of the connection and what is pinned now. */
import type { AppError } from "../kit/app-error.ts";
import { appError } from "../kit/app-error.ts";
import type { OperatorRole } from "../kit/operator-role.ts";
import type { Clock } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err } from "../kit/result.ts";
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
  | { readonly kind: "operator"; readonly role: OperatorRole; readonly requester: Requester }
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

/** What a connection showed; the verdict on its signature is kept with the CA that gave it. */
export interface Credentials {
  readonly certificate?: Uint8Array;
  readonly address: string;
  verdict?: { readonly authority: Authority; readonly identity: Result<ClientIdentity, AppError> };
}

export type Door = (credentials: Credentials) => Caller;

export function createDoor(state: State, clock: Clock): Door {
  let pinned: Authority | undefined;
  const authority = (): Authority | undefined => {
    const claim = state.claim.get();
    if (claim === undefined) return (pinned = undefined);
    if (pinned?.pem !== claim.operatorCA) {
      const parsed = parseAuthority(claim.operatorCA);
      if (!parsed.ok) throw new UnreadableAuthority(parsed.error);
      pinned = parsed.value;
    }
    return pinned;
  };

  const decide = (credentials: Credentials): Caller => {
    const ca = authority();
    if (ca === undefined) return { kind: "unclaimed" };
    const identity = identityOf(credentials, ca);
    if (!identity.ok) return { kind: "refused", error: identity.error };
    const standing = checkStanding(identity.value, ca, {
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

/** It was checked before it was recorded; unreadable now, it must let nobody in. */
class UnreadableAuthority extends Error {
  readonly reason: AppError;

  constructor(cause: AppError) {
    super(cause.message);
    this.reason = appError("pinned-ca", "the pinned operator CA can't be read", { cause });
  }
}

function identityOf(credentials: Credentials, authority: Authority): Result<ClientIdentity, AppError> {
  if (credentials.certificate === undefined) {
    return err(
      appError("no-certificate", "no client certificate was presented", { hint: "use the one of `cctl pki issue`" }),
    );
  }
  if (credentials.verdict?.authority !== authority) {
    credentials.verdict = { authority, identity: readClient(credentials.certificate, authority) };
  }
  return credentials.verdict.identity;
}
