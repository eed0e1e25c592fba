/** What a machine is before it becomes a node, as far as plan, lint and addresses need it; and the parsers for it. */
import { z } from "zod";
import type { AppError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";

export interface LinkAddress {
  readonly family: 4 | 6;
  readonly address: string;
  readonly prefix: number;
  /** `global`, `link`, `host`. */
  readonly scope: string;
  /** Leased or advertised: it may be another one tomorrow. */
  readonly isDynamic: boolean;
  /** Of privacy, on its way out, or somebody else's: nothing to be known by. */
  readonly isPassing?: true;
}

export interface Link {
  readonly name: string;
  readonly mac: string;
  readonly mtu: number;
  readonly isUp: boolean;
  readonly hasCarrier: boolean;
  readonly isLoopback: boolean;
  /** `wireguard`, `bridge`, `veth`, …; absent for a real NIC. */
  readonly kind?: string;
  readonly addresses: readonly LinkAddress[];
}

export interface Route {
  readonly family: 4 | 6;
  /** `default` or a CIDR. */
  readonly destination: string;
  readonly device: string;
  readonly gateway?: string;
  readonly metric: number;
}

/** What may change while a node runs. */
export interface Network {
  readonly links: readonly Link[];
  readonly routes: readonly Route[];
}

export interface MachineFacts extends Network {
  readonly hostname: string;
  readonly machineId: string;
  /** Of the firmware; absent where it gives none. */
  readonly systemUuid?: string;
  readonly nameservers: readonly string[];
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly hasCgroup2: boolean;
  /** Of /var/lib/k0s: `pki`, `etcd`, `db`, `kubelet.conf`, whatever of it is there. */
  readonly oldK0s: readonly string[];
  /** `v1.36.4+k0s.1`, or with `-sim` for the tests' stand-in; absent when the program does not answer. */
  readonly k0sVersion?: string;
}

const addresses = z.array(
  z.looseObject({
    ifname: z.string(),
    flags: z.array(z.string()).default([]),
    mtu: z.number().default(0),
    address: z.string().default(""),
    link_type: z.string().default(""),
    linkinfo: z.looseObject({ info_kind: z.string().optional() }).optional(),
    addr_info: z
      .array(
        z.looseObject({
          family: z.string().optional(),
          local: z.string().optional(),
          prefixlen: z.number().optional(),
          scope: z.string().default("global"),
          dynamic: z.boolean().default(false),
          temporary: z.boolean().default(false),
          deprecated: z.boolean().default(false),
          dadfailed: z.boolean().default(false),
        }),
      )
      .default([]),
  }),
);

const routes = z.array(
  z.looseObject({
    dst: z.string(),
    dev: z.string().optional(),
    gateway: z.string().optional(),
    metric: z.number().default(0),
    type: z.string().optional(),
  }),
);

/** `ip -j -d addr`; entries that `ip` leaves empty (a link that vanished while it listed) are `{}` and are skipped. */
export function parseLinks(json: string): Result<readonly Link[], AppError> {
  const parsed = parseJson(json, addresses, "ip -j -d addr");
  if (!parsed.ok) return parsed;
  return ok(
    parsed.value.map((link): Link => {
      const kind = link.linkinfo?.info_kind;
      return {
        name: link.ifname,
        mac: link.address,
        mtu: link.mtu,
        isUp: link.flags.includes("UP"),
        hasCarrier: link.flags.includes("LOWER_UP"),
        isLoopback: link.flags.includes("LOOPBACK"),
        ...(kind === undefined ? {} : { kind }),
        addresses: link.addr_info.flatMap(({ family, local, prefixlen, scope, dynamic, ...flags }) =>
          local === undefined || prefixlen === undefined || (family !== "inet" && family !== "inet6")
            ? []
            : [
                {
                  family: family === "inet" ? (4 as const) : (6 as const),
                  address: local,
                  prefix: prefixlen,
                  scope,
                  isDynamic: dynamic,
                  ...(flags.temporary || flags.deprecated || flags.dadfailed ? { isPassing: true as const } : {}),
                },
              ],
        ),
      };
    }),
  );
}

/** `ip -j -4 route` or `ip -j -6 route`; only unicast routes over a device. */
export function parseRoutes(json: string, family: 4 | 6): Result<readonly Route[], AppError> {
  const parsed = parseJson(json, routes, `ip -j -${family} route`);
  if (!parsed.ok) return parsed;
  return ok(
    parsed.value.flatMap(({ dst, dev, gateway, metric, type }): Route[] =>
      dev === undefined || (type !== undefined && type !== "unicast")
        ? []
        : [{ family, destination: dst, device: dev, metric, ...(gateway === undefined ? {} : { gateway }) }],
    ),
  );
}

/** `/etc/resolv.conf`, or systemd-resolved's upstream one. */
export const parseNameservers = (text: string): readonly string[] =>
  [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1] ?? "");

/** `MemTotal` of `/proc/meminfo`, in bytes; 0 when it is not there. */
export const parseMemory = (text: string): number => Number(/^MemTotal:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;

/** Real network cards: neither loopback nor anything that software made. */
export const isNic = (link: Link): boolean => !link.isLoopback && link.kind === undefined;

export const globalAddresses = (link: Link, family?: 4 | 6): readonly LinkAddress[] =>
  link.addresses.filter((address) => address.scope === "global" && (family === undefined || address.family === family));

/** The route that wins: lowest metric, IPv4 first. */
export function defaultRoute(all: readonly Route[]): Route | undefined {
  return [...all]
    .filter((route) => route.destination === "default")
    .sort((a, b) => a.family - b.family || a.metric - b.metric)[0];
}

function parseJson<T>(json: string, schema: z.ZodType<T>, what: string): Result<T, AppError> {
  let value: unknown;
  try {
    value = JSON.parse(json.trim() === "" ? "[]" : json);
  } catch {
    return fail("not-json", `${what} printed no JSON`);
  }
  const filled = Array.isArray(value) ? value.filter((each) => JSON.stringify(each) !== "{}") : value;
  const parsed = schema.safeParse(filled);
  if (!parsed.success)
    return fail(
      "not-understood",
      `${what} printed what was not expected: ${parsed.error.issues[0]?.path.join(".") ?? ""}`,
    );
  return ok(parsed.data);
}
