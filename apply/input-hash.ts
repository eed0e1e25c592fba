/** One hash over everything that rendering reads: what differs now is pending, what does not is drift. */
import type { Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { Secret } from "../kit/secret.ts";
import { canonicalJson } from "./canonical.ts";
import { diffFields } from "./fields.ts";
import { fingerprint, withSecretFingerprints } from "./fingerprint.ts";
import { RENDER_VERSION } from "./render-version.ts";
import { sha256Of } from "../kit/sha256.ts";

export interface HashedInputs {
  readonly document: Document;
  /** Fingerprints by field path, as `secretFingerprints` makes them. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Secret of the node: without it a hash says nothing about a password. */
  readonly fingerprintKey: string;
  readonly addresses: RecordedAddresses;
  readonly hostname: string;
  readonly k0sVersion: string;
  /** The CNI was handed over: its bootstrap stack is no longer rendered. */
  readonly isHandedOver?: boolean;
  readonly renderVersion?: number;
}

/** Used up at the first boot; a token that expired since, or a changed passphrase file, changes nothing here. */
export const isFirstBoot = (field: string): boolean => /^join\.|^luks\[/.test(field);

/**
 * The document by what it says, not by how: against an empty one each field that is not nothing is a change, named
 * lists go by name, and a block of defaults is as good as none.
 */
function canonicalDocument(document: Document, key: string): unknown {
  return diffFields({}, document).changes.map(({ path, name, new: value }) => [
    path,
    withSecretFingerprints(name === "manifests" ? withSortedFiles(value) : value, name, key),
  ]);
}

/** k0s takes the files of a stack in no order. */
export function withSortedFiles(stack: unknown): unknown {
  const { files, ...rest } = stack as { readonly files: readonly { readonly name: string }[] };
  return { ...rest, files: files.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** Of resolved secrets by field path, without those that only the first boot needs. */
export function secretFingerprints(
  secrets: ReadonlyMap<string, Secret>,
  key: string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...secrets]
      .filter(([field]) => !isFirstBoot(field))
      .map(([field, secret]) => [field, fingerprint(key, secret.reveal().trim())] as const),
  );
}

/** SHA-256 in hex. */
export function inputHash(inputs: HashedInputs): string {
  const { fingerprintKey } = inputs;
  const canonical = canonicalJson({
    document: canonicalDocument(inputs.document, fingerprintKey),
    secrets: inputs.secrets,
    addresses: inputs.addresses,
    hostname: inputs.hostname,
    k0sVersion: inputs.k0sVersion,
    isHandedOver: inputs.isHandedOver === true,
    renderVersion: inputs.renderVersion ?? RENDER_VERSION,
  });
  return sha256Of(canonical);
}
