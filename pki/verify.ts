import { createPrivateKey, X509Certificate } from "node:crypto";

import type * as types from "@peculiar/x509";

import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { OperatorRole } from "../kit/operator-role.ts";
import { OPERATOR_ROLES, ROLE_PREFIX } from "../kit/operator-role.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { Authority } from "./authority.ts";
import { fingerprintOfDer } from "./fingerprint.ts";
import type { ClientIdentity } from "./model.ts";
import { x509 } from "./x509.ts";

const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
/** Basic constraints, key usage, extended key usage, alternative names, key identifiers, policies. */
const KNOWN_CRITICAL = new Set(["2.5.29.19", "2.5.29.15", "2.5.29.37", "2.5.29.17", "2.5.29.14", "2.5.29.35"]);
const REISSUE = "issue a new one with `cctl pki issue`";

/**
 * The part of the check that can't change while a connection lives: the signature of the pinned CA by its own key
 * (the runtime's `authorized` is not consulted: it was wrong before), purpose, form. The subject is read only after
 * the signature was found good. notBefore is ignored: nodes' clocks lag.
 */
export function readClient(der: Uint8Array, authority: Authority): Result<ClientIdentity, AppError> {
  let certificate: X509Certificate;
  let parsed: types.X509Certificate;
  try {
    certificate = new X509Certificate(der);
    parsed = new x509.X509Certificate(new Uint8Array(certificate.raw));
  } catch {
    return fail("certificate-unreadable", "the client certificate can't be read");
  }
  if (!certificate.checkIssued(authority.certificate) || !certificate.verify(authority.certificate.publicKey)) {
    return fail("wrong-ca", "the client certificate was not issued by this node's operator CA", {
      hint: `this node obeys the CA ${authority.fingerprint}`,
    });
  }
  const hash = "hash" in parsed.signatureAlgorithm ? parsed.signatureAlgorithm.hash : undefined;
  if (hash !== undefined && /SHA-1$|MD5/i.test(typeof hash === "string" ? hash : hash.name)) {
    return fail("weak-signature", "the client certificate is signed with SHA-1", { hint: REISSUE });
  }
  const strange = parsed.extensions.find((extension) => extension.critical && !KNOWN_CRITICAL.has(extension.type));
  if (strange !== undefined) {
    return fail("unknown-extension", `the client certificate has an unknown critical extension ${strange.type}`);
  }
  if (parsed.getExtension<types.BasicConstraintsExtension>("2.5.29.19")?.ca === true) {
    return fail("not-a-client", "a CA certificate is no client certificate", { hint: REISSUE });
  }
  const purposes = parsed.getExtension<types.ExtendedKeyUsageExtension>("2.5.29.37")?.usages ?? [];
  if (!purposes.some((purpose) => purpose === CLIENT_AUTH)) {
    return fail("no-client-auth", "the client certificate lacks the extended key usage clientAuth", { hint: REISSUE });
  }
  const usage = parsed.getExtension<types.KeyUsagesExtension>("2.5.29.15");
  if (usage !== null && (usage.usages & x509.KeyUsageFlags.digitalSignature) === 0) {
    return fail("no-signature-usage", "the client certificate's key usage lacks digitalSignature", { hint: REISSUE });
  }
  const role = highestRole(parsed.subjectName.getField("O"));
  return ok({
    name: parsed.subjectName.getField("CN")[0] ?? "",
    ...(role === undefined ? {} : { role }),
    fingerprint: fingerprintOfDer(certificate.raw),
    issuer: parsed.issuer,
    serial: parsed.serialNumber.toLowerCase(),
    notAfterMs: parsed.notAfter.getTime(),
  });
}

export interface Standing {
  /** The later of wall clock and time floor: a clock set back must not revive what has ended. */
  readonly nowMs: number;
  readonly isRevoked: (issuer: string, serial: string) => boolean;
}

/** The part that can change between two requests of one connection. */
export function checkStanding(
  identity: ClientIdentity,
  authority: Authority,
  standing: Standing,
): Result<void, AppError> {
  if (identity.notAfterMs <= standing.nowMs) {
    return fail("certificate-expired", `the client certificate ended on ${iso(identity.notAfterMs)}`, {
      hint: REISSUE,
    });
  }
  if (authority.notAfterMs <= standing.nowMs) {
    return fail("ca-expired", `this node's operator CA ended on ${iso(authority.notAfterMs)}`, {
      hint: "pin a new CA at the console",
    });
  }
  if (standing.isRevoked(identity.issuer, identity.serial)) {
    return fail("revoked", "the client certificate was revoked", { hint: REISSUE });
  }
  return ok(undefined);
}

function highestRole(organizations: readonly string[]): OperatorRole | undefined {
  return OPERATOR_ROLES.findLast((role) => organizations.includes(`${ROLE_PREFIX}${role}`));
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** Whether the two PEM texts belong together. */
export function isKeyOf(certificate: string, privateKey: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(privateKey));
  } catch {
    return false;
  }
}
