import { X509Certificate } from "node:crypto";

import type * as types from "@peculiar/x509";

import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { fingerprintOfDer } from "./fingerprint.ts";
import { x509 } from "./x509.ts";

/** A pinned operator CA, ready to verify with. */
export interface Authority {
  readonly certificate: X509Certificate;
  readonly pem: string;
  readonly subject: string;
  readonly fingerprint: string;
  readonly notAfterMs: number;
}

const MAX_PEM_CHARS = 64 * 1024;

/**
 * One PEM CA certificate with cert-sign and nothing else in the text. Not judged by its end: what is pinned already
 * must stay readable; `checkAuthority` judges what shall be pinned.
 */
export function parseAuthority(pem: string): Result<Authority, AppError> {
  if (pem.length > MAX_PEM_CHARS) return fail("ca-too-large", "the operator CA is larger than 64 KiB");
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) {
    return fail("ca-private-key", "the operator CA comes with a private key, which is compromised now", {
      hint: "mint a new CA with `cctl pki init`, and send only its certificate",
    });
  }
  const blocks = [...pem.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----/g)].map((match) => match[1]);
  if (blocks.length !== 1 || blocks[0] !== "CERTIFICATE") {
    return fail("ca-count", `the operator CA must be exactly one PEM certificate, got ${blocks.length} PEM blocks`);
  }
  let certificate: X509Certificate;
  let parsed: types.X509Certificate;
  try {
    certificate = new X509Certificate(pem);
    parsed = new x509.X509Certificate(certificate.raw);
  } catch {
    return fail("ca-unreadable", "the operator CA can't be read as a certificate");
  }
  const constraints = parsed.getExtension<types.BasicConstraintsExtension>("2.5.29.19");
  const usage = parsed.getExtension<types.KeyUsagesExtension>("2.5.29.15");
  if (constraints?.ca !== true) {
    return fail("ca-not-ca", "the operator CA is not a CA certificate", {
      hint: "send operator-ca.pem, not a client certificate",
    });
  }
  if (usage === null || (usage.usages & x509.KeyUsageFlags.keyCertSign) === 0) {
    return fail("ca-no-cert-sign", "the operator CA may not sign certificates: its key usage lacks keyCertSign");
  }
  return ok({
    certificate,
    pem: `${pem.trim()}\n`,
    subject: parsed.subject,
    fingerprint: fingerprintOfDer(certificate.raw),
    notAfterMs: parsed.notAfter.getTime(),
  });
}

/** What may be pinned now: as `parseAuthority`, and not past its end. */
export function checkAuthority(pem: string, nowMs: number): Result<Authority, AppError> {
  const authority = parseAuthority(pem);
  if (authority.ok && authority.value.notAfterMs <= nowMs) {
    return fail("ca-expired", `the operator CA ended on ${new Date(authority.value.notAfterMs).toISOString()}`);
  }
  return authority;
}
