/**
 * What the node's own document says of the API: whether there is one, who may call, whether a code is asked for.
 * In service that is the baseline's document; before, the one that bootstrap would find now.
 */
import type { AppError } from "../kit/app-error.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import { findDocument } from "../config/driver.ts";
import type { SourceContext } from "../config/source.ts";
import { ANY_TIME, parseDocument } from "../config/load.ts";
import { checkAuthority } from "../pki/authority.ts";
import { readOperatorCa } from "../provision/operator-ca/driver.ts";
import type { Claim } from "../state/model.ts";
import type { State } from "../state/open.ts";

export type OwnDocument =
  | { readonly kind: "none" }
  /** `isRunning`: it is what the node runs. */
  | { readonly kind: "found"; readonly text: string; readonly origin: string; readonly isRunning?: true }
  | { readonly kind: "failed"; readonly error: AppError };

export interface OwnDocumentInput {
  readonly host: Host;
  readonly paths: Paths;
  readonly state: State;
  readonly boot?: BootFacts;
  readonly readSeeds?: SourceContext["readSeeds"];
}

export async function findOwnDocument(input: OwnDocumentInput): Promise<OwnDocument> {
  const { host, paths, state, boot, readSeeds } = input;
  const baseline = state.baseline.get();
  if (baseline !== undefined) {
    return { kind: "found", text: baseline.document.text, origin: baseline.document.origin, isRunning: true };
  }
  // After a reset only what was given with a claim counts: another source would claim the node, or close its port.
  const isHeld = state.meta.get("held") !== undefined;
  if (isHeld && state.claim.get() === undefined) return { kind: "none" };
  const cmdline = await host.files.readText("/proc/cmdline", { maxBytes: 65_536 });
  const source = await findDocument(host, {
    paths,
    cmdline: cmdline.ok ? cmdline.value : "",
    // Bootstrap names them; the API must know at once whether it may open its port.
    areShadowedUnnamed: true,
    ...(boot === undefined ? {} : { boot }),
    ...(readSeeds === undefined ? {} : { readSeeds }),
  });
  switch (source.kind) {
    case "none":
      return { kind: "none" };
    case "failed":
      return { kind: "failed", error: source.error };
    case "found":
      if (isHeld && !source.origin.includes(paths.config)) return { kind: "none" };
      return { kind: "found", text: source.text, origin: source.origin };
  }
}

export interface ApiMode {
  /** `false`: no daemon, no port. */
  readonly isEnabled: boolean;
  readonly isInsecure: boolean;
  /** Claimed by configuration. */
  readonly claim?: Omit<Claim, "atMs">;
  readonly problem?: AppError;
}

/** An invalid document decides nothing here: bootstrap refuses it and says why. */
export async function readApiMode(
  host: Host,
  own: OwnDocument,
  { isClaimed, signal }: { readonly isClaimed: boolean; readonly signal?: AbortSignal },
): Promise<ApiMode> {
  const open: ApiMode = { isEnabled: true, isInsecure: false };
  if (own.kind !== "found") return own.kind === "none" ? open : { ...open, problem: own.error };
  // What was turned off stays off, whatever the clock says of a certificate beside it.
  const { document } = parseDocument(own.text, { nowMs: own.isRunning === true ? ANY_TIME : host.clock.nowMs() });
  const api = document?.api;
  if (document === undefined || api === undefined) return open;
  if (!api.enabled) return { ...open, isEnabled: false };
  // Once a CA is pinned the document is not consulted about it any more.
  if (isClaimed) return open;
  const authority = await readOperatorCa(host, api, signal);
  if (!authority.ok) return { ...open, problem: authority.error };
  if (authority.value === undefined) return { ...open, isInsecure: api.insecure };
  const checked = checkAuthority(authority.value, host.clock.nowMs());
  if (!checked.ok) return { ...open, problem: checked.error };
  return { ...open, claim: { operatorCA: checked.value.pem, fingerprint: checked.value.fingerprint, by: "document" } };
}
