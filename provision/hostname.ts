import type { Document } from "../config/document.ts";

/** Names that an image or an installer gives to every machine: they name nobody. */
const generic = new Set(["", "localhost", "localhost.localdomain", "debian", "corium", "(none)"]);

/** Two nodes of one name replace each other in a cluster, so a generic name never becomes one. */
export function chooseHostname(document: Document, present: string, machineId: string): string {
  if (document.node.name !== undefined) return document.node.name;
  const name = present.trim().toLowerCase();
  if (!generic.has(name)) return name;
  return `corium-${machineId.slice(0, 8)}`;
}

/** 127.0.1.1 as Debian does it: the name resolves while there is neither DNS nor an address. */
export const renderHosts = (hostname: string): string =>
  [
    "127.0.0.1 localhost",
    `127.0.1.1 ${hostname.includes(".") ? `${hostname} ${hostname.split(".")[0] ?? hostname}` : hostname}`,
    "::1 localhost ip6-localhost ip6-loopback",
    "ff02::1 ip6-allnodes",
    "ff02::2 ip6-allrouters",
    "",
  ].join("\n");
