/** Source 1 and the record of documents, made one again after a program was killed between writing the two. */
import { parseDocument } from "../config/load.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { State } from "../state/open.ts";
import { sha256Of } from "../kit/sha256.ts";

const MAX_BYTES = 1024 * 1024;

/**
 * Before bootstrap the file is what will be acted on, so that the record follows it; who had sent it got no answer, and
 * it counts as nobody's. In service the baseline decides, and the apply's own recovery has seen to the file.
 */
export async function reconcileDocument({
  host,
  paths,
  state,
}: {
  readonly host: Host;
  readonly paths: Pick<Paths, "config">;
  readonly state: Pick<State, "baseline" | "documents">;
}): Promise<boolean> {
  if (state.baseline.get() !== undefined) return false;
  const text = await host.files.readText(paths.config, { maxBytes: MAX_BYTES });
  if (!text.ok || state.documents.latest()?.sha256 === sha256Of(text.value)) return false;
  const atMs = host.clock.nowMs();
  // What is no document was never accepted by us: bootstrap says what is wrong with it.
  if (parseDocument(text.value, { nowMs: atMs }).document === undefined) return false;
  state.documents.add({ text: text.value, atMs, requester: { kind: "document" }, origin: paths.config });
  return true;
}
