/** Documents out of the schema's own fields: whole ones, which validate, with secrets wherever one may stand. */
import { AUTHORITY, CONTROLLER_TOKEN, key32, passphrase, password, pick, WORKER_TOKEN, type Draw } from "./secrets.ts";

export type Plain = Record<string, unknown>;

export interface Grown {
  readonly tree: Plain;
  readonly secrets: readonly string[];
}

interface Garden {
  readonly draw: Draw;
  readonly secrets: string[];
  /** Grows, so that names, disks, ranges and mount points are unique. */
  next: number;
}

const DISKS = ["ext4", "xfs"] as const;
const ROLES = ["single", "controller", "controller+worker", "worker", undefined] as const;
const SCHEDULES = ["daily", "Sun 04:00", "*-*-* 01:30:00", "Mon..Fri 22:30", "hourly", "*-*-1 03:00 UTC"];

const chance = ({ draw }: Garden): boolean => draw(1) === 1;
/** The field, in half of the cases. */
const maybe = (garden: Garden, field: string, make: () => unknown): Plain =>
  chance(garden) ? { [field]: make() } : {};
/** A whole block, in a third of them: small documents are many documents. */
const seldom = (garden: Garden, field: string, make: () => unknown): Plain =>
  garden.draw(2) === 0 ? { [field]: make() } : {};
const list = <T>(garden: Garden, most: number, make: () => T): T[] => Array.from({ length: garden.draw(most) }, make);
const unique = (garden: Garden, prefix: string): string => `${prefix}${garden.next++}`;

function keep(garden: Garden, secret: string): string {
  garden.secrets.push(secret);
  return secret;
}

function source(garden: Garden): Plain {
  const place = chance(garden)
    ? {
        url: "https://seed.example.net/a?b=c",
        ...maybe(garden, "authFile", () => "/etc/corium/secrets/bearer"),
      }
    : { file: "/run/secrets/a b" };
  return { ...place, ...maybe(garden, "waitFor", () => pick(garden.draw, ["90s", "15m", "1m30s", "1h"])) };
}

const secretOrSource = (garden: Garden, field: string, make: (draw: Draw) => string): Plain =>
  chance(garden) ? { [field]: keep(garden, make(garden.draw)) } : { [`${field}From`]: source(garden) };

function device(garden: Garden): unknown {
  if (chance(garden)) return unique(garden, "/dev/disk/by-id/ata-");
  return {
    serial: unique(garden, "S6PN"),
    ...maybe(garden, "wwn", () => "0x5000c500a0b1c2d3"),
    ...maybe(garden, "model", () => pick(garden.draw, ["Samsung*", "*", "WDC W?4003*", "*a*a*a*a*a*a*b"])),
    ...pick<Plain>(garden.draw, [
      {},
      { type: "nvme" },
      { type: "nvme", bus: "nvme" },
      ...["sata", "sas", "usb", "virtio", "mmc"].map((bus) => ({ bus, type: pick(garden.draw, ["ssd", "hdd"]) })),
      { bus: pick(garden.draw, ["nvme", "sata", "sas", "usb", "virtio", "mmc"]) },
    ]),
    ...maybe(garden, "minSize", () => "500GB"),
    ...maybe(garden, "maxSize", () => pick(garden.draw, ["1.8TiB", "500GB", "888888888.888888TiB"])),
  };
}

const mounted = (garden: Garden): Plain => ({
  filesystem: pick(garden.draw, DISKS),
  mountPoint: unique(garden, pick(garden.draw, ["/srv/m", "/var/lib/k0s/m", "/mnt/a%b ", "/opt/é"])),
  ...maybe(garden, "wipe", () => chance(garden)),
});

function storage(garden: Garden): Plain {
  const name = (): string => unique(garden, "store");
  const arrays = (): Plain[] =>
    list(garden, 2, () => {
      const [level, least] = pick(garden.draw, [
        [0, 2],
        [1, 2],
        [5, 3],
        [6, 4],
        [10, 4],
      ]) as [number, number];
      const spares = level === 0 ? [] : list(garden, 2, () => device(garden));
      return {
        name: name(),
        level,
        devices: Array.from({ length: least }, () => device(garden)),
        spares,
        ...mounted(garden),
      };
    });
  const raid = (seldom(garden, "raid", arrays)["raid"] ?? []) as Plain[];
  const bare = seldom(garden, "bare", () => [
    { name: "bare", level: 1, devices: [device(garden), device(garden)], filesystem: "none" },
  ])["bare"] as Plain[] | undefined;
  const volume = (): Plain => {
    const unlock = chance(garden) ? { unlock: "passphrase", ...secretOrSource(garden, "passphrase", passphrase) } : {};
    return { name: name(), device: device(garden), ...unlock, ...mounted(garden) };
  };
  const onArray = bare === undefined ? [] : [{ name: name(), device: "/dev/md/bare", ...mounted(garden) }];
  const pool = (): Plain => {
    const [type, least] = pick(garden.draw, [
      ["stripe", 1],
      ["mirror", 2],
      ["raidz", 2],
      ["raidz2", 3],
    ]) as [string, number];
    return {
      name: name(),
      vdevs: [{ type, devices: Array.from({ length: least }, () => device(garden)) }],
      mountPoint: unique(garden, "/srv/z"),
      ...maybe(garden, "options", () => ({ ashift: 12 })),
      ...maybe(garden, "filesystemOptions", () => anything(garden, 2)),
      ...maybe(garden, "datasets", () => [{ name: "a" }]),
      ...maybe(garden, "wipe", () => false),
    };
  };
  return {
    ...seldom(garden, "disks", () =>
      list(garden, 2, () => ({ name: name(), device: device(garden), ...mounted(garden) })),
    ),
    ...(raid.length === 0 && bare === undefined ? {} : { raid: [...raid, ...(bare ?? [])] }),
    ...seldom(garden, "luks", () => [...list(garden, 2, volume), ...onArray]),
    ...seldom(garden, "zfs", () => list(garden, 2, pool)),
    ...seldom(garden, "install", () => ({
      disk: device(garden),
      ...maybe(garden, "mirror", () => device(garden)),
      ...maybe(garden, "wipe", () => true),
    })),
  };
}

/** What a free map may hold: whatever YAML can say, deep and odd. */
function anything(garden: Garden, depth: number): Plain {
  const keys = ["spec", "a", "enabled", "x-y", "no", "__proto__", "constructor", "1", "a b", "é", "", "network", "api"];
  const scalars = [true, false, null, 0, -0, 1.5, 1e-7, 9007199254740991, "", "no", "1:30", "012", "a\nb\n", " x", "é😀", "\u0085", "# x"]; // prettier-ignore
  const value = (left: number): unknown => {
    const kind = garden.draw(left <= 0 ? 1 : 4);
    if (kind < 2) return pick(garden.draw, scalars);
    return kind === 2 ? list(garden, 3, () => value(left - 1)) : map(left - 1);
  };
  const map = (left: number): Plain =>
    Object.fromEntries(list(garden, 4, () => [pick(garden.draw, keys), value(left)] as const));
  return map(depth);
}

function overlay(garden: Garden, isNodeAddress: boolean): Plain {
  const at = garden.next++;
  const key = pick(garden.draw, [() => ({ generateKey: true }), () => secretOrSource(garden, "privateKey", key32)])();
  const peer = (): Plain => ({
    publicKey: Buffer.alloc(32, garden.next++).toString("base64"),
    allowedIPs: [`10.8.${garden.next++ % 250}.0/24`, ...(chance(garden) ? [`2001:db8::${garden.next++}/128`] : [])],
    ...maybe(garden, "endpoint", () =>
      pick(garden.draw, ["hub.example.net:51820", "[2001:db8::2]:1", "192.0.2.1:65535"]),
    ),
    ...maybe(garden, "persistentKeepalive", () => pick(garden.draw, [0, 25, 65535])),
    ...(chance(garden) ? secretOrSource(garden, "presharedKey", key32) : {}),
  });
  const address = `10.9.${at % 250}.1/24`;
  return {
    name: `wg${at}`,
    address: chance(garden) ? address : [address, `fd00::${at}/64`],
    ...maybe(garden, "listenPort", () => pick(garden.draw, [0, 10_000 + at])),
    ...maybe(garden, "mtu", () => pick(garden.draw, [1280, 1420, 65535])),
    ...(isNodeAddress ? { nodeAddress: true } : {}),
    ...key,
    ...maybe(garden, "peers", () => list(garden, 2, peer)),
  };
}

const MANIFESTS = [
  "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
  "---\n---\napiVersion: v1\nkind: List\nitems: [{kind: ConfigMap, metadata: {name: a, namespace: b}}]\n",
  "apiVersion: v1\nkind: Secret\nmetadata: &m {name: a}\nstringData: {a: b, c: *m}\n",
];

function workloads(garden: Garden): Plain {
  const addon = (): Plain => {
    const own = {
      name: unique(garden, "repo"),
      url: pick(garden.draw, ["https://c.example.net", "http://c.example.net/x"]),
    };
    const chart = chance(garden) ? { chart: "oci://r.example/a/b" } : { chart: `${own.name}/metallb`, repository: own };
    return {
      name: unique(garden, "addon"),
      ...chart,
      ...maybe(garden, "version", () => "1.10"),
      ...maybe(garden, "namespace", () => "kube-system"),
      ...maybe(garden, "values", () => anything(garden, 3)),
    };
  };
  const file = (): Plain => ({ name: unique(garden, "f") + ".yaml", content: pick(garden.draw, MANIFESTS) });
  const stack = (): Plain => ({ name: unique(garden, "stack"), files: [file(), ...list(garden, 2, file)] });
  return {
    ...seldom(garden, "addons", () => list(garden, 2, addon)),
    ...seldom(garden, "manifests", () => list(garden, 2, stack)),
    ...seldom(garden, "k0s", () => ({ patch: anything(garden, 3) })),
    ...seldom(garden, "backup", () => ({
      enabled: true,
      ...maybe(garden, "schedule", () => pick(garden.draw, SCHEDULES)),
      ...maybe(garden, "path", () => "/srv/a b"),
      ...maybe(garden, "keep", () => pick(garden.draw, [1, 10_000])),
    })),
  };
}

function controlPlane(garden: Garden, role: string | undefined): Plain {
  const hasHa = role !== "single" && chance(garden);
  const hasJoin = role !== "single" && role !== undefined && chance(garden);
  const ha = (): Plain => ({
    enabled: true,
    virtualIP: "192.0.2.100/24",
    ...secretOrSource(garden, "authPass", password),
    ...maybe(garden, "interface", () => "eno1.7"),
    ...maybe(garden, "virtualRouterID", () => pick(garden.draw, [1, 255])),
    ...maybe(garden, "unicastPeers", () => ["192.0.2.11", "192.0.2.12"]),
  });
  const isSqlite = role === "single" || (role === "controller+worker" && !hasHa && !hasJoin);
  const cni = pick(garden.draw, ["kuberouter", "calico", "custom"]);
  const handover = (): Plain => ({
    mode: pick(garden.draw, ["manual", "automatic"]),
    stack: "cni",
    application: { name: "cilium", namespace: "argocd" },
  });
  return {
    ...(hasHa ? { ha: ha() } : {}),
    ...(hasJoin ? { join: secretOrSource(garden, "token", () => CONTROLLER_TOKEN) } : {}),
    ...maybe(garden, "storage", () => ({ type: isSqlite && chance(garden) ? "sqlite" : "etcd" })),
    network: {
      ...maybe(garden, "podCIDR", () => "10.200.0.0/16"),
      ...maybe(garden, "serviceCIDR", () => "10.96.0.0/12"),
      cni,
      ...(cni === "custom" ? maybe(garden, "handover", handover) : {}),
    },
  };
}

function identity(garden: Garden, role: string | undefined): Plain {
  const label = (): readonly [string, string] => [
    unique(garden, "example.com/l"),
    pick(garden.draw, ["", "a", "y", "1.2"]),
  ];
  const api = pick<() => Plain>(garden.draw, [
    () => ({ enabled: true, operatorCA: AUTHORITY, ...maybe(garden, "awaitConfig", () => true) }),
    () => ({ operatorCAFrom: source(garden) }),
    () => ({ enabled: true, insecure: true }),
    () => (role === undefined ? {} : { enabled: false }),
  ]);
  return {
    ...(role === undefined ? {} : { role }),
    cluster: {
      ...maybe(garden, "name", () => "harbour"),
      endpoint: pick(garden.draw, ["192.0.2.100", "api.example.net"]),
      ...maybe(garden, "subjectAltNames", () => ["a.example.net", "2001:db8::5", "192.0.2.7"]),
    },
    ...seldom(garden, "node", () => ({
      ...maybe(garden, "name", () => "n".repeat(63)),
      labels: Object.fromEntries(list(garden, 4, label)),
      taints: list(garden, 2, () => ({
        key: unique(garden, "example.com/t"),
        ...maybe(garden, "value", () => "v"),
        effect: pick(garden.draw, ["NoSchedule", "PreferNoSchedule", "NoExecute"]),
      })),
    })),
    ...seldom(garden, "upgrades", () => ({
      automatic: pick(garden.draw, ["download", "apply"]),
      ...maybe(garden, "schedule", () => pick(garden.draw, SCHEDULES)),
      ...maybe(garden, "source", () => ({ url: "https://releases.example.net/corium" })),
    })),
    ...seldom(garden, "api", api),
    ...seldom(garden, "kubernetes", () => ({ version: "v1.36.3+k0s.2" })),
  };
}

/** One that validates. Every field of the schema is in some of them. */
export function growDocument(draw: Draw): Grown {
  const garden: Garden = { draw, secrets: [], next: 1 };
  const role = pick(draw, ROLES);
  const isWorker = role === "worker";
  const tree: Plain = {
    ...identity(garden, role),
    ...storage(garden),
    ...seldom(garden, "wireguard", () => list(garden, 1, () => overlay(garden, false))),
    ...(isWorker ? { join: secretOrSource(garden, "token", () => WORKER_TOKEN) } : controlPlane(garden, role)),
    ...(isWorker ? {} : workloads(garden)),
  };
  const overlays = tree["wireguard"] as Plain[] | undefined;
  if (overlays !== undefined && chance(garden)) overlays.push(overlay(garden, true));
  const handover = (tree["network"] as Plain | undefined)?.["handover"];
  if (handover !== undefined) {
    const stack = { name: "cni", files: [{ name: "cni.yaml", content: MANIFESTS[0] }] };
    tree["manifests"] = [...((tree["manifests"] as Plain[] | undefined) ?? []), stack];
  }
  return { tree, secrets: garden.secrets };
}
