import type { OwnedStorage } from "../kit/disk.ts";
import type { State } from "../state/open.ts";

/**
 * What of this node's own storage has to be there now. After a reset its kept disks are still recorded, so that they are
 * taken over by the next document; until one has come nothing starts them, and that they do not run is no fault.
 */
export const storageInUse = ({ owned, meta }: Pick<State, "owned" | "meta">): readonly OwnedStorage[] =>
  meta.get("held") === undefined ? owned.list() : [];
