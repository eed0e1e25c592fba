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

const CLIENT = "give the certificate of an admin of the new CA: cctl pki issue --role admin, with that CA";

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
    return fail("proof", "proof.certificate is no certificate in PEM", { hint: CLIENT });
  }
  const identity = readClient(new Uint8Array(certificate.raw), authority.value);
  if (!identity.ok)
    return fail("proof", `proof.certificate is not of the new CA: ${identity.error.message}`, { hint: CLIENT });
  const standingNow = checkStanding(identity.value, authority.value, standing);
  if (!standingNow.ok)
    return fail("proof", `proof.certificate does not count: ${standingNow.error.message}`, { hint: CLIENT });
  if (identity.value.role !== "admin") {
    return fail(
      "proof",
      `proof.certificate has the role ${identity.value.role ?? "none"}, not admin: nobody could give the node back`,
      {
        hint: CLIENT,
      },
    );
  }
  const isSigned = verify("sha256", signed(nonce), certificate.publicKey, Buffer.from(proof.signature, "base64"));
  return isSigned
    ? ok(authority.value)
    : fail("proof", "proof.signature is not over this node's nonce by the key of proof.certificate", {
        hint: "get another nonce (GET /v1/ca/rotate): each is good for one try, at this node, for ten minutes",
      });
}
