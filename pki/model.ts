import type { OperatorRole } from "../kit/operator-role.ts";

/** A certificate and its key as PEM; the key is PKCS 8. */
export interface KeyPair {
  readonly certificate: string;
  readonly privateKey: string;
}

/** Who a verified client certificate names. */
export interface ClientIdentity {
  /** Subject CN. */
  readonly name: string;
  /** The highest of Subject O; absent when no O is a role. */
  readonly role?: OperatorRole;
  /** `SHA256:` + unpadded base64 of the certificate's SHA-256. */
  readonly fingerprint: string;
  /** Issuer name as RFC 4514 and the serial number as lower-case hex: what a revocation names. */
  readonly issuer: string;
  readonly serial: string;
  readonly notAfterMs: number;
}
