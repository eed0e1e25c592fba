/** What holds k0s back at each start. Pure. */
import type { Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { overlayAddress } from "./addresses.ts";
import { unitOf } from "./argv.ts";
import { UNIT_FOLDER } from "./paths.ts";

/**
 * k0s is not started while an address is gone that this node was bootstrapped with: it would take another one, and etcd and
 * the certificates have the old one. corium-address@.service waits for it. That of an overlay has its own wait.
 */
export function addressHold(document: Document, recorded: RecordedAddresses): readonly RenderedFile[] {
  if (document.role === undefined) return [];
  const overlay = overlayAddress(document);
  const addresses = new Set(Object.values(recorded).filter((each) => each !== undefined && each !== overlay));
  if (addresses.size === 0) return [];
  const units = [...addresses].map((address) => `corium-address@${address}.service`).join(" ");
  return [
    {
      path: `${UNIT_FOLDER}/${unitOf(document)}.service.d/50-corium-address.conf`,
      mode: 0o644,
      content: `# Written by corium: the addresses that this node was bootstrapped with.\n\n[Unit]\nRequires=${units}\nAfter=${units}\n`,
    },
  ];
}
