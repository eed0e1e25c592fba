/** Looks at peers, asks them, and points them to where their names lead by now. */
import type { Host } from "../../kit/ports.ts";
import { isMoved, nextAddress, parseAhosts, setEndpointArgv, staleEndpoints } from "../endpoints.ts";
import type { InterfaceStatus } from "../model.ts";
import { parseWgDump } from "../parse.ts";
import { peerIn } from "../peers.ts";
import type { OverlayMemory, PeerProbe, WatchedOverlay } from "../watch.ts";
import { isUnanswered, pingArgv, remembered } from "../watch.ts";

/** Every interface of the kernel's; none where wg can't be asked. */
export async function readInterfaces(host: Host): Promise<readonly InterfaceStatus[]> {
  const dump = await host.exec({ argv: ["wg", "show", "all", "dump"], timeoutMs: 10_000 });
  return parseWgDump(dump.exitCode === 0 ? dump.stdout : "");
}

/** `undefined`: the answer would mean nothing, as when nobody answers small packets either. At most some ten seconds. */
export async function ask(host: Host, { kind, target, overlay, bytes }: PeerProbe): Promise<boolean | undefined> {
  const isAnswered = async (argv: readonly string[]): Promise<boolean | undefined> => {
    const ran = await host.exec({ argv, timeoutMs: 10_000 });
    return ran.exitCode === null ? undefined : ran.exitCode === 0;
  };
  if (kind === "ping") return isAnswered(pingArgv(target));
  const full = pingArgv(target, { device: overlay, bytes });
  if ((await isAnswered(full)) === true) return true;
  if ((await isAnswered(pingArgv(target, { device: overlay }))) !== true) return undefined;
  // Both of the first two may have been lost by chance.
  return isAnswered(full);
}

/**
 * Points peers whose name has another address by now to it, without touching the netdev (that would drop all sessions).
 * To be called every half minute or so; says what moved.
 */
export async function refreshEndpoints(
  host: Host,
  specs: readonly Pick<WatchedOverlay, "name" | "peers">[],
  interfaces: readonly InterfaceStatus[],
  memory: OverlayMemory = [],
): Promise<readonly string[]> {
  const moves: string[] = [];
  for (const stale of staleEndpoints(specs, interfaces, host.clock.nowMs() / 1000)) {
    const status = peerIn(interfaces, stale.name, stale.publicKey);
    const resolved = await host.exec({ argv: ["getent", "ahosts", stale.host], timeoutMs: 10_000 });
    const addresses = resolved.exitCode === 0 ? parseAhosts(resolved.stdout) : [];
    const next = nextAddress(stale.address, addresses);
    if (next === undefined || status === undefined) continue;
    const hasMoved = isMoved(stale.address, addresses);
    // An idle peer is well where it is; one that does not answer may do so at another of its addresses.
    if (!hasMoved && !isUnanswered(remembered(memory, stale.name, stale.publicKey), status)) continue;
    const set = await host.exec({ argv: setEndpointArgv(stale, next), timeoutMs: 10_000 });
    if (set.exitCode === 0 && hasMoved)
      moves.push(`overlay ${stale.name}: peer ${stale.host} moved from ${stale.address} to ${next}`);
  }
  return moves;
}
