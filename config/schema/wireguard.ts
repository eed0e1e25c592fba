import * as z from "zod";
import { parseCidr, parseIp } from "../ip.ts";
import { valueSays } from "../messages/values.ts";
import { isDnsName, isInterfaceName } from "../names.ts";
import { secretSource, text, wholeNumber } from "./fields.ts";

const address = text((value) => (parseCidr(value) === undefined ? valueSays.ipWithPrefix(value) : undefined));

/** Base64 of exactly 32 bytes, in the one spelling that `wg` takes. */
export function isKey32(value: string): boolean {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(value)) return false;
  return Buffer.from(value, "base64").toString("base64") === value;
}

const key = (what: string): z.ZodString => text((value) => (isKey32(value) ? undefined : valueSays.key32(what)));

function isEndpoint(value: string): boolean {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):([1-9]\d{0,4})$/.exec(value);
  if (match === null || Number(match[3]) > 65535) return false;
  if (match[1] !== undefined) return parseIp(match[1])?.family === 6;
  const name = match[2] ?? "";
  return parseIp(name)?.family === 4 || isDnsName(name);
}

export const wireguard = z
  .array(
    z.strictObject({
      name: text((value) => (isInterfaceName(value) ? undefined : valueSays.interfaceName(value))).meta({
        description: "Name of the interface, at most 15; unique.",
      }),
      address: z
        .union([address, z.array(address)])
        .meta({ description: "Its address with prefix length, or a list of such." }),
      listenPort: wholeNumber(0, 65535).optional().meta({ description: "UDP port. 0 or absent: any." }),
      mtu: wholeNumber(576, 65535).optional().meta({ description: "MTU; at least 1280 with an IPv6 address." }),
      nodeAddress: z.boolean().optional().meta({
        description: "Whether Kubernetes uses this address for the node; one interface at most.",
        default: false,
      }),
      privateKey: key("the private key")
        .optional()
        .meta({ description: "A secret. Exactly one of privateKey, privateKeyFrom and generateKey." }),
      privateKeyFrom: secretSource.optional().meta({ description: "Where the private key is fetched from." }),
      generateKey: z.boolean().optional().meta({
        description: "Make a key on the node and keep it there; its public key is in the status.",
        default: false,
      }),
      peers: z
        .array(
          z.strictObject({
            publicKey: key("the public key").meta({ description: "Public key of the peer; unique." }),
            endpoint: text((value) => (isEndpoint(value) ? undefined : valueSays.endpoint(value)))
              .optional()
              .meta({ description: "`host:port`, `[IPv6]:port`. Absent: the peer calls." }),
            allowedIPs: z
              .array(text((value) => (parseCidr(value) === undefined ? valueSays.ipWithPrefix(value) : undefined)))
              .meta({ description: "Ranges behind the peer; the longest prefix wins." }),
            persistentKeepalive: wholeNumber(0, 65535)
              .optional()
              .meta({ description: "Seconds between keepalives. 0 or absent: none." }),
            presharedKey: key("the preshared key").optional().meta({ description: "A secret." }),
            presharedKeyFrom: secretSource.optional().meta({ description: "Where the preshared key is fetched from." }),
          }),
        )
        .optional()
        .meta({ description: "Who is reached over it.", default: [] }),
    }),
  )
  .meta({ description: "WireGuard interfaces.", default: [] });
