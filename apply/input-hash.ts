/** One hash over everything that rendering reads: what differs now is pending, what does not is drift. */
import { createHash } from "node:crypto";
import type { Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { Secret } from "../kit/secret.ts";
import { canonicalJson } from "./canonical.ts";
import { diffFields } from "./fields.ts";
import { fingerprint, withSecretFingerprints } from "./fingerprint.ts";
import { RENDER_VERSION } from "./render-version.ts";

export interface HashedInputs {
  readonly document: Document;
  /** Resolved, by field path. */
  readonly secrets: ReadonlyMap<string, Secret>;
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
const isFirstBoot = (field: string): boolean => /^join\.|^luks\[/.test(field);

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

/** SHA-256 in hex. */
export function inputHash(inputs: HashedInputs): string {
  const { fingerprintKey } = inputs;
  const secrets = [...inputs.secrets]
    .filter(([field]) => !isFirstBoot(field))
    .map(([field, secret]) => [field, fingerprint(fingerprintKey, secret.reveal())] as const);
  const canonical = canonicalJson({
    document: canonicalDocument(inputs.document, fingerprintKey),
    secrets: Object.fromEntries(secrets),
    addresses: inputs.addresses,
    hostname: inputs.hostname,
    k0sVersion: inputs.k0sVersion,
    isHandedOver: inputs.isHandedOver === true,
    renderVersion: inputs.renderVersion ?? RENDER_VERSION,
  });
  return createHash("sha256").update(canonical).digest("hex");
}
