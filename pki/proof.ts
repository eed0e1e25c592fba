/** That somebody holds a key of a CA: an admin's certificate of it, and a signature over what the node has just said. */
import { createPrivateKey, sign, verify, X509Certificate } from "node:crypto";
import { type AppError, fail } from "../kit/app-error.ts";
import { ok, type Result } from "../kit/result.ts";
import { type Authority, checkAuthority } from "./authority.ts";
import { checkStanding, readClient, type Standing } from "./verify.ts";

export interface Proof {
  /** PEM. */
  readonly certificate: string;
  /** Base64 of ECDSA with SHA-256, in DER. */
  readonly signature: string;
}

/** So that a signature that was given for something else proves nothing here. */
const signed = (nonce: string): Buffer => Buffer.from(`corium ca rotate ${nonce}`);

export const signProof = (
  nonce: string,
  { certificate, privateKey }: { readonly certificate: string; readonly privateKey: string },
): Proof => ({
  certificate,
  signature: sign("sha256", signed(nonce), createPrivateKey(privateKey)).toString("base64"),
});

/** The CA, once it is known that one of its admins asks for it. */
export function checkProof(
  { operatorCA, proof, nonce }: { readonly operatorCA: string; readonly proof: Proof; readonly nonce: string },
  standing: Standing,
): Result<Authority, AppError> {
  const authority = checkAuthority(operatorCA, standing.nowMs);
  if (!authority.ok) return authority;
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(proof.certificate);
  } catch {
    return fail("proof", "the proof's certificate can't be read");
  }
  const identity = readClient(new Uint8Array(certificate.raw), authority.value);
  if (!identity.ok) return fail("proof", `the proof is not of the new CA: ${identity.error.message}`);
  const standingNow = checkStanding(identity.value, authority.value, standing);
  if (!standingNow.ok) return fail("proof", `the proof does not count: ${standingNow.error.message}`);
  if (identity.value.role !== "admin") {
    return fail("proof", "the proof is not an admin's: nobody could give the node back", {
      hint: "cctl pki issue --role admin, with the new CA",
    });
  }
  const isSigned = verify("sha256", signed(nonce), certificate.publicKey, Buffer.from(proof.signature, "base64"));
  return isSigned
    ? ok(authority.value)
    : fail("proof", "the proof's signature is not over this node's nonce by that key");
}
