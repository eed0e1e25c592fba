/** Both ways in: the port, over TLS, and the socket on the node itself. */
import { type AppError, fail } from "../kit/app-error.ts";
import { ok, type Result } from "../kit/result.ts";
import type { Connections } from "./connections.ts";
import { type Listener, listenOnSocket, listenOnTls, type TlsOptions } from "./listener.ts";
import type { ServeOptions } from "./serve-options.ts";

/** The port first: a second daemon must not take the socket of the first. */
export async function openDoors(
  { paths, port, address }: Pick<ServeOptions, "paths" | "port" | "address">,
  tls: Omit<TlsOptions, "port" | "address"> & { readonly connections: Connections },
): Promise<Result<{ readonly remote: Listener; readonly local: Listener }, AppError>> {
  let remote: Listener | undefined;
  try {
    remote = await listenOnTls({ ...tls, port, ...(address === undefined ? {} : { address }) });
    return ok({
      remote,
      local: await listenOnSocket({ path: paths.socket, handle: tls.handle, connections: tls.connections }),
    });
  } catch (thrown) {
    await remote?.close();
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : String(thrown);
    if (code === "EADDRINUSE" && remote === undefined) return fail("port", `port ${port} is in use`);
    return fail("listen", `${remote === undefined ? `port ${port}` : paths.socket} can't be opened (${code})`);
  }
}
