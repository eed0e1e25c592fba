/** Before bootstrap a document that was let in becomes source 1, and bootstrap is set going with it. */
import type { Requester } from "../state/model.ts";
import { problem, sentence } from "./problem.ts";
import type { ApiServices } from "./services.ts";

/** The refusal; undefined when it is accepted. */
export async function acceptDocument(
  services: ApiServices,
  text: string,
  requester: Requester,
  origin: "apply" | "install",
): Promise<Response | undefined> {
  const { state, host, paths, bootstrap } = services;
  if ((await bootstrap.settled()) === "running") {
    const operation = state.operations.running()?.id;
    return problem(409, "the node is being provisioned; wait until that ends or fails", {
      reason: "busy",
      ...(operation === undefined ? {} : { operation }),
    });
  }
  const written = await host.files.write(paths.config, text, { mode: 0o600 });
  if (!written.ok) return problem(503, sentence(written.error), { reason: "not-written" });
  state.documents.add({ text, atMs: host.clock.nowMs(), requester, origin });
  const poked = await bootstrap.poke();
  if (poked.ok) return undefined;
  return problem(503, `the document is written, but bootstrap could not be started: ${sentence(poked.error)}`, {
    reason: "bootstrap",
  });
}
