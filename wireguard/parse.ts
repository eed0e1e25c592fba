import { z } from "zod";
import type { InterfaceStatus, LinkStatus, PeerStatus } from "./model.ts";

/**
 * `wg show all dump`. The second field of an interface is its private key, the third of a peer the key shared with it:
 * neither leaves this function.
 */
export function parseWgDump(stdout: string): readonly InterfaceStatus[] {
  const interfaces = new Map<string, { head: Omit<InterfaceStatus, "peers">; peers: PeerStatus[] }>();
  for (const row of stdout.split("\n")) {
    const fields = row.split("\t");
    const [name = ""] = fields;
    if (name === "") continue;
    if (fields.length === 5) {
      const [, , publicKey, listenPort] = fields;
      const port = Number(listenPort);
      interfaces.set(name, {
        head: { name, ...(isSet(publicKey) ? { publicKey } : {}), ...(port > 0 ? { listenPort: port } : {}) },
        peers: [],
      });
    } else if (fields.length === 9) {
      const [, publicKey = "", , endpoint, allowed, handshake, received, sent] = fields;
      interfaces.get(name)?.peers.push({
        publicKey,
        ...(isSet(endpoint) ? { endpoint } : {}),
        allowedIPs: isSet(allowed) ? allowed.split(",") : [],
        ...(Number(handshake) > 0 ? { latestHandshake: Number(handshake) } : {}),
        receivedBytes: Number(received) || 0,
        sentBytes: Number(sent) || 0,
      });
    }
  }
  return [...interfaces.values()].map(({ head, peers }) => ({ ...head, peers }));
}

/**
 * Are these the keys that an interface of `wg show all dump` runs with? `shared`: by the peer's public key. Nothing of
 * the dump leaves this function. True where it does not say.
 */
export function runsWithKeys(
  stdout: string,
  name: string,
  { publicKey, shared }: { readonly publicKey?: string; readonly shared: ReadonlyMap<string, string> },
): boolean {
  return stdout
    .split("\n")
    .map((row) => row.split("\t"))
    .filter((fields) => fields[0] === name)
    .every(([, first, second, ...rest]) => {
      if (rest.length === 2) return publicKey === undefined || !isSet(second) || second === publicKey;
      const wanted = shared.get(first ?? "");
      return wanted === undefined || second === wanted;
    });
}

const isSet = (field: string | undefined): field is string => field !== undefined && field !== "" && field !== "(none)";

const link = z.looseObject({
  AdministrativeState: z.string(),
  FlagsString: z.string().nullish(),
  MTU: z.number(),
  Addresses: z
    .array(
      z.looseObject({
        Family: z.number(),
        Address: z.array(z.number()),
        PrefixLength: z.number(),
        ConfigState: z.string().nullish(),
      }),
    )
    .nullish(),
});

/** `networkctl --json=short status NAME`; undefined when there is no such link. */
export function parseNetworkctl(stdout: string): LinkStatus | undefined {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  const parsed = link.safeParse(json);
  if (!parsed.success) return undefined;
  const { AdministrativeState, FlagsString, MTU, Addresses } = parsed.data;
  return {
    isUp: (FlagsString ?? "").split(",").includes("up"),
    isConfigured: AdministrativeState === "configured",
    mtu: MTU,
    addresses: (Addresses ?? [])
      .filter(
        (each) => each.ConfigState === null || each.ConfigState === undefined || each.ConfigState === "configured",
      )
      .map((each) => `${formatAddress(each.Address)}/${each.PrefixLength}`),
  };
}

/** Bytes → text; IPv6 in full, to be compared as numbers. */
function formatAddress(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join(".");
  const words: string[] = [];
  for (let at = 0; at < bytes.length; at += 2) {
    words.push((((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16));
  }
  return words.join(":");
}
