import { createPrivateKey, createPublicKey } from "node:crypto";
import { cidrKey, maskCidr, parseCidr } from "../ip.ts";
import { ruleSays } from "../messages/rules.ts";
import { valueSays } from "../messages/values.ts";
import type { Path } from "../path.ts";
import type { Draft, DocumentInput } from "../schema/root.ts";
import { checkExclusive, checkSource, entries, uniqueNames, type RuleContext } from "./rule.ts";

type Interface = Draft<NonNullable<DocumentInput["wireguard"]>[number]>;

export function checkWireguard(context: RuleContext): void {
  const { wireguard } = context.draft;
  uniqueNames(context, ["wireguard"], wireguard, "interfaces");
  let first: Interface | undefined;
  for (const [index, overlay] of entries(wireguard)) {
    const path: Path = ["wireguard", index];
    checkKeySource(context, path, overlay);
    checkAddresses(context, path, overlay);
    if (overlay.nodeAddress === true) {
      if (first !== undefined) context.report([...path, "nodeAddress"], ruleSays.secondNodeAddress(first.name));
      first ??= overlay;
    }
    checkPeers(context, [...path, "peers"], overlay);
  }
  checkUnique(context);
}

/** Of two sockets on one port the second does not open; of two interfaces with one address packets find one. */
function checkUnique(context: RuleContext): void {
  const ports = new Map<number, string | undefined>();
  const addresses = new Map<string, string | undefined>();
  for (const [index, { name, listenPort, address }] of entries(context.draft.wireguard)) {
    if (listenPort !== undefined && listenPort !== 0) {
      const path = ["wireguard", index, "listenPort"];
      if (ports.has(listenPort)) context.report(path, ruleSays.portTwice(listenPort, ports.get(listenPort)));
      else ports.set(listenPort, name);
    }
    const list = typeof address === "string" ? [address] : address;
    for (const [at, text] of entries(list)) {
      const ip = parseCidr(text)?.ip;
      const key = `${ip?.family}:${ip?.value}`;
      const path = ["wireguard", index, "address", ...(typeof address === "string" ? [] : [at])];
      if (ip !== undefined && addresses.has(key)) {
        context.report(path, ruleSays.addressTwice(text, addresses.get(key)));
      } else addresses.set(key, name);
    }
  }
}

/** PKCS #8 of an X25519 key (RFC 8410) up to its 32 bytes. */
const X25519 = Buffer.from("302e020100300506032b656e04220420", "hex");

/** What `wg pubkey` prints for it. */
function publicKeyOf(privateKey: string): string {
  const der = Buffer.concat([X25519, Buffer.from(privateKey, "base64")]);
  const key = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  return Buffer.from(key.export({ format: "jwk" }).x ?? "", "base64url").toString("base64");
}

/** Exactly one of the three; `generateKey: false` is absent. */
function checkKeySource(context: RuleContext, path: Path, overlay: Interface): void {
  checkSource(context, [...path, "privateKeyFrom"], overlay.privateKeyFrom);
  const fields = ["privateKey", "privateKeyFrom", "generateKey"].filter((field) =>
    field === "generateKey" && overlay.generateKey === false ? false : context.given([...path, field]),
  );
  if (fields.length === 0) context.report([...path, "privateKey"], ruleSays.keyMissing());
  const [first, ...others] = fields;
  if (first === undefined) return;
  let kept = first;
  for (const field of others) {
    const later = context.later([...path, kept], [...path, field]);
    context.report(later, ruleSays.exclusive(kept, field));
    if (later.at(-1) === kept) kept = field;
  }
}

function checkAddresses(context: RuleContext, path: Path, { address, mtu, peers }: Interface): void {
  const list = typeof address === "string" ? [address] : (address ?? []);
  if (Array.isArray(address) && address.length === 0) context.report([...path, "address"], valueSays.empty());
  // Below that the kernel has no IPv6 on the link at all: neither an address nor a route to what is behind a peer.
  const ranges = entries(peers).flatMap(([, { allowedIPs }]) => entries(allowedIPs).map(([, range]) => range));
  const hasIpv6 = [...list, ...ranges].some((text) => text !== undefined && parseCidr(text)?.ip.family === 6);
  if (hasIpv6 && mtu !== undefined && mtu < 1280) context.report([...path, "mtu"], ruleSays.mtuIpv6(mtu));
}

function checkPeers(context: RuleContext, path: Path, { privateKey, peers }: Interface): void {
  const keys = new Set<string>();
  const own = privateKey === undefined ? undefined : publicKeyOf(privateKey);
  const ranges = new Map<string, number>();
  for (const [index, peer] of entries(peers)) {
    const here = [...path, index];
    checkSource(context, [...here, "presharedKeyFrom"], peer.presharedKeyFrom);
    checkExclusive(context, here, "presharedKey", "presharedKeyFrom");
    if (peer.publicKey !== undefined) {
      if (peer.publicKey === own) context.report([...here, "publicKey"], ruleSays.ownKey());
      if (keys.has(peer.publicKey)) context.report([...here, "publicKey"], ruleSays.duplicateKeyOf("peer"));
      keys.add(peer.publicKey);
    }
    if (peer.allowedIPs?.length === 0) context.report([...here, "allowedIPs"], valueSays.empty());
    checkRanges(context, [...here, "allowedIPs"], index, peer.allowedIPs, ranges);
  }
}

function checkRanges(
  context: RuleContext,
  path: Path,
  peer: number,
  allowed: readonly (string | undefined)[] | undefined,
  ranges: Map<string, number>,
): void {
  for (const [index, text] of entries(allowed)) {
    const cidr = parseCidr(text);
    if (cidr === undefined) continue;
    if (cidr.hasHostBits) context.report([...path, index], valueSays.maskedRange(text, maskCidr(text)));
    const owner = ranges.get(cidrKey(cidr));
    if (owner === undefined) ranges.set(cidrKey(cidr), peer);
    else if (owner === peer) context.report([...path, index], ruleSays.rangeRepeated(maskCidr(text)));
    else context.report([...path, index], ruleSays.rangeTwice(maskCidr(text), owner));
  }
}
