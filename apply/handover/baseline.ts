/** What the node runs once a stack is handed over: the same document, rendered without it. */
import type { Document } from "../../config/document.ts";
import type { Host } from "../../kit/ports.ts";
import type { Baseline } from "../../state/model.ts";
import type { State } from "../../state/open.ts";
import { nodeFingerprintKey } from "../fingerprint-key.ts";
import { inputHash } from "../input-hash.ts";
import { stackFolder } from "./model.ts";

export function baselineWithout(
  { baseline, document }: { readonly baseline: Baseline; readonly document: Document },
  stack: string,
  { host, state }: { readonly host: Host; readonly state: Pick<State, "meta"> },
): Baseline {
  const { addresses, hostname, k0sVersion, renderVersion } = baseline;
  const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
  const left = Object.entries(baseline.rendered).filter(([path]) => !path.startsWith(`${stackFolder(stack)}/`));
  return {
    ...baseline,
    rendered: Object.fromEntries(left),
    inputHash: inputHash({
      document,
      secrets: baseline.secretFingerprints,
      addresses,
      hostname,
      k0sVersion,
      renderVersion,
      fingerprintKey,
      isHandedOver: true,
    }),
  };
}
