/** networkd resolves a peer's name once and never again; whose address moved is dead for ever. These say which to move. */
import type { WireguardSpec } from "../config/document.ts";
import { parseIp } from "../config/ip.ts";
import type { InterfaceStatus } from "./model.ts";

/** WireGuard tries a new handshake every 120 s, and a session ends after 180 s. */
export const staleAfterSeconds = 150;

export interface StaleEndpoint {
  readonly name: string;
  readonly publicKey: string;
  /** As the document has it. */
  readonly host: string;
  readonly port: number;
  /** The address that it has now. */
  readonly address: string;
}

/** `host:port` or `[address]:port`. */
export function splitEndpoint(endpoint: string): { readonly host: string; readonly port: number } | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(endpoint);
  const host = match?.[1] ?? match?.[2];
  return host === undefined ? undefined : { host, port: Number(match?.[3]) };
}

/** Peers by name that have not answered for too long. One that never resolved is not among them: networkd retries those. */
export function staleEndpoints(
  specs: readonly Pick<WireguardSpec, "name" | "peers">[],
  interfaces: readonly InterfaceStatus[],
  nowSeconds: number,
): readonly StaleEndpoint[] {
  return specs.flatMap(({ name, peers }) =>
    peers.flatMap(({ publicKey, endpoint }): StaleEndpoint[] => {
      const status = interfaces.find((each) => each.name === name)?.peers.find((peer) => peer.publicKey === publicKey);
      const wanted = splitEndpoint(endpoint ?? "");
      const current = splitEndpoint(status?.endpoint ?? "");
      if (wanted === undefined || current === undefined || parseIp(wanted.host) !== undefined) return [];
      if (nowSeconds - (status?.latestHandshake ?? 0) < staleAfterSeconds) return [];
      return [{ name, publicKey, ...wanted, address: current.host }];
    }),
  );
}

const valueOf = (text: string): string => {
  const ip = parseIp(text);
  return ip === undefined ? text : `${ip.family}:${ip.value}`;
};

/** Does its name lead elsewhere by now? Not when the resolver knows nothing. */
export const isMoved = (current: string, resolved: readonly string[]): boolean =>
  resolved.length > 0 && !resolved.some((address) => valueOf(address) === valueOf(current));

/** The address to try next; undefined when the present one is all there is. Each of several gets its turn. */
export function nextAddress(current: string, resolved: readonly string[]): string | undefined {
  const at = resolved.findIndex((address) => valueOf(address) === valueOf(current));
  const next = resolved[(at + 1) % Math.max(resolved.length, 1)];
  return next === undefined || valueOf(next) === valueOf(current) ? undefined : next;
}

/** `getent ahosts NAME`: each address once, in the resolver's order; zones of link-local addresses are left out. */
export function parseAhosts(stdout: string): readonly string[] {
  const addresses = stdout.split("\n").map((line) => line.split(/\s+/)[0] ?? "");
  return [...new Set(addresses.filter((address) => parseIp(address) !== undefined))];
}

export function setEndpointArgv(stale: StaleEndpoint, address: string): string[] {
  const host = address.includes(":") ? `[${address}]` : address;
  return ["wg", "set", stale.name, "peer", stale.publicKey, "endpoint", `${host}:${stale.port}`];
}
