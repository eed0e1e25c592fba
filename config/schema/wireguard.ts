import * as z from "zod";
import { parseCidr, parseIp } from "../ip.ts";
import { valueSays } from "../messages/values.ts";
import { isDnsName, isInterfaceName } from "../names.ts";
import { CIDR_FORM, secretSource, sourceMeta, text, wholeNumber } from "./fields.ts";

const address = text(
  (value) => (parseCidr(value) === undefined ? valueSays.ipWithPrefix(value) : undefined),
  CIDR_FORM,
);

/** Base64 of exactly 32 bytes, in the one spelling that `wg` takes. */
export function isKey32(value: string): boolean {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(value)) return false;
  return Buffer.from(value, "base64").toString("base64") === value;
}

const key = (what: string): z.ZodString =>
  text((value) => (isKey32(value) ? undefined : valueSays.key32(what)), { pattern: "^[A-Za-z0-9+/]{43}=$" });

function isEndpoint(value: string): boolean {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):([1-9]\d{0,4})$/.exec(value);
  if (match === null || Number(match[3]) > 65535) return false;
  if (match[1] !== undefined) return parseIp(match[1])?.family === 6;
  const name = match[2] ?? "";
  return parseIp(name)?.family === 4 || isDnsName(name);
}

const KEY_RULE = "base64 of 32 bytes, as wg prints it";
const KEY_EXAMPLE = "oaz/T6GntS+g8BFaovEUO64kxo89I2d5WO77wRV9RH4=";
const PEER_EXAMPLE = { publicKey: KEY_EXAMPLE, endpoint: "hub.example.net:51820", allowedIPs: ["10.9.0.2/32"] };

export const wireguard = z
  .array(
    z.strictObject({
      name: text((value) => (isInterfaceName(value) ? undefined : valueSays.interfaceName(value)), {
        pattern: "^[a-z0-9][a-z0-9-]*$",
        maxLength: 15,
      }).meta({
        description: "Name of the interface.",
        rule: "a-z, 0-9 and hyphens, at most 15; unique",
        examples: ["wg0"],
      }),
      address: z.union([address, z.array(address)]).meta({
        description: "Its own address, or a list of them.",
        rule: "IP/prefix; in none of the cluster's ranges",
        examples: ["10.9.0.1/24", ["10.9.0.1/24", "fd09::1/64"]],
      }),
      listenPort: wholeNumber(0, 65535)
        .optional()
        .meta({ description: "UDP port. 0 or absent: any.", rule: "0 to 65535", examples: [51820] }),
      mtu: wholeNumber(576, 65535)
        .optional()
        .meta({
          description: "Largest packet in the tunnel. Default: the kernel's.",
          rule: "576 to 65535, at least 1280 with an IPv6 address, its own or behind a peer",
          examples: [1380],
        }),
      nodeAddress: z
        .boolean()
        .optional()
        .meta({
          description: "Whether Kubernetes uses this address for the node.",
          rule: "one interface at most",
          default: false,
          examples: [true],
        }),
      privateKey: key("the private key")
        .optional()
        .meta({
          description: "The private key itself.",
          rule: `${KEY_RULE}; exactly one of privateKey, privateKeyFrom and generateKey`,
          examples: [KEY_EXAMPLE],
        }),
      privateKeyFrom: secretSource.optional().meta(sourceMeta("the private key")),
      generateKey: z
        .boolean()
        .optional()
        .meta({
          description: "Make a key on the node and keep it there; its public key is in the status.",
          default: false,
          examples: [true],
        }),
      peers: z
        .array(
          z.strictObject({
            publicKey: key("the public key").meta({
              description: "Public key of the peer.",
              rule: `${KEY_RULE}; unique`,
              examples: [KEY_EXAMPLE],
            }),
            endpoint: text((value) => (isEndpoint(value) ? undefined : valueSays.endpoint(value)), {
              pattern: ":[1-9][0-9]{0,4}$",
            })
              .optional()
              .meta({
                description: "Where the peer is reached. Absent: the peer calls.",
                rule: "host:port, or [IPv6]:port",
                examples: ["hub.example.net:51820", "[2001:db8::2]:51820"],
              }),
            allowedIPs: z.array(address).meta({
              minItems: 1,
              description: "Ranges behind the peer; of nested ones the longest prefix wins.",
              rule: "IP/prefix, at least one; the same range on two peers is refused",
              examples: [["10.9.0.2/32", "192.168.40.0/24"]],
            }),
            persistentKeepalive: wholeNumber(0, 65535)
              .optional()
              .meta({
                description: "Seconds between keepalives. 0 or absent: none.",
                rule: "0 to 65535",
                examples: [25],
              }),
            presharedKey: key("the preshared key")
              .optional()
              .meta({
                description: "A second, symmetric key.",
                rule: `${KEY_RULE}; one of presharedKey and presharedKeyFrom at most`,
                examples: [KEY_EXAMPLE],
              }),
            presharedKeyFrom: secretSource.optional().meta(sourceMeta("the preshared key")),
          }),
        )
        .optional()
        .meta({ description: "Who is reached over it.", default: [], examples: [[PEER_EXAMPLE]] }),
    }),
  )
  .meta({
    description: "WireGuard interfaces.",
    default: [],
    examples: [[{ name: "wg0", address: "10.9.0.1/24", listenPort: 51820, generateKey: true, peers: [PEER_EXAMPLE] }]],
  });
