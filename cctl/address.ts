/** Where a node answers: `host`, `host:port`, `[v6]:port` or a bare IPv6 address. */
import { isIPv6 } from "node:net";
import { type Result, err, ok } from "../kit/result.ts";

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

export function parseAddress(text: string, defaultPort: number): Result<NodeAddress, string> {
  const bracketed = /^\[([^\]]*:[^\]]*)\](?::(.*))?$/.exec(text);
  if (bracketed !== null) return withPort(bracketed[1] ?? "", bracketed[2], defaultPort, text);
  // Two colons or more without brackets: all of it is the address, a port can't be told from its last group.
  if ((text.match(/:/g) ?? []).length > 1) {
    return withPort(text, undefined, defaultPort, text);
  }
  const [host = "", port] = text.split(":");
  return withPort(host, port, defaultPort, text);
}

/** As it is written in the store and in messages; the default port is left out nowhere, so that it is unique. */
export function formatAddress({ host, port }: NodeAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function withPort(
  host: string,
  port: string | undefined,
  defaultPort: number,
  text: string,
): Result<NodeAddress, string> {
  if (host.includes(":") ? !isIPv6(host) : !/^[A-Za-z0-9]([\w.-]*[A-Za-z0-9.])?$/.test(host)) return notAnAddress(text);
  if (port === undefined) return ok({ host: host.toLowerCase(), port: defaultPort });
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65535) {
    return err(`'${text}' has no port between 1 and 65535 after its colon`);
  }
  return ok({ host: host.toLowerCase(), port: Number(port) });
}

function notAnAddress(text: string): Result<NodeAddress, string> {
  return err(`'${text}' is no address: wanted host, host:port, [v6]:port or a bare IPv6 address`);
}
