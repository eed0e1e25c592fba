/** The record of what a node runs, made anew: at its bootstrap, and when a document is adopted for one that was lost. */
import type { Document } from "../config/document.ts";
import type { Secret } from "../kit/secret.ts";
import type { Baseline } from "../state/model.ts";
import { inputHash, secretFingerprints } from "./input-hash.ts";
import { RENDER_VERSION } from "./render-version.ts";

export interface NewBaseline extends Pick<
  Baseline,
  "hostname" | "machineId" | "addresses" | "k0sVersion" | "rendered" | "atMs"
> {
  readonly document: Document;
  readonly stored: Baseline["document"];
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly fingerprintKey: string;
  readonly isHandedOver: boolean;
}

export function newBaseline(input: NewBaseline): Baseline {
  const { document, stored, secrets, fingerprintKey, isHandedOver } = input;
  const { hostname, machineId, addresses, k0sVersion, rendered, atMs } = input;
  const fingerprints = secretFingerprints(secrets, fingerprintKey);
  return {
    document: stored,
    hostname,
    machineId,
    addresses,
    k0sVersion,
    inputHash: inputHash({
      document,
      secrets: fingerprints,
      addresses,
      hostname,
      k0sVersion,
      fingerprintKey,
      isHandedOver,
    }),
    renderVersion: RENDER_VERSION,
    secretFingerprints: fingerprints,
    rendered,
    atMs,
  };
}
