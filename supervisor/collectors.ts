/** The domains' reports as `NodeAnswer` has them. */
import { mountPointsOf } from "../config/mount-points.ts";
import { readMounts } from "../disks/driver.ts";
import { joinSystem, systemArrays } from "../iso/mirror/report.ts";
import { askReadiness } from "../k0s/membership/driver.ts";
import type { VipMemory } from "../k0s/vip/watch.ts";
import type { BootFacts } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import { globalAddresses, parseLinks } from "../provision/facts.ts";
import { readArrays } from "../raid/driver.ts";
import { readOverlay } from "../wireguard/driver.ts";
import type { OverlayMemory } from "../wireguard/watch.ts";
import type { State } from "../state/open.ts";
import type { ReadIdentities } from "./disk-identities.ts";
import { kubeletOf } from "./membership-watch.ts";
import type { Collectors } from "./status.ts";
import { readHa } from "./vip-watch.ts";
import type { Volumes } from "./volumes.ts";
import { knownVolumes } from "./volumes.ts";
import { storageInUse } from "./storage-in-use.ts";

export function nodeCollectors(
  host: Host,
  state: State,
  {
    hardware,
    volumes,
    identities,
    peers,
    vip,
    boot,
  }: {
    readonly hardware: Collectors["hardware"];
    readonly volumes: Pick<Volumes, "read">;
    readonly identities: ReadIdentities;
    /** What was found out about peers of overlays over time. */
    readonly peers: () => OverlayMemory;
    /** What was found out about the virtual address. */
    readonly vip: () => VipMemory;
    readonly boot?: BootFacts;
  },
): Collectors {
  const system = boot?.isMirrored === true ? systemArrays(boot.installation ?? "") : [];
  return {
    async arrays(document) {
      const levels = new Map(document?.raid.map((raid) => [raid.name, raid]));
      const wanted = storageInUse(state)
        .filter(({ kind }) => kind === "raid")
        .map(({ name, uuid, disks }) => {
          const spec = levels.get(name);
          return {
            name,
            uuid,
            disks,
            ...(spec === undefined ? {} : { level: `raid${spec.level}`, memberCount: spec.devices.length }),
          };
        });
      // Who is who among the disks is asked of every disk: not for nothing.
      if (system.length + wanted.length === 0) return [];
      const reports = await readArrays(host, [...system, ...wanted], await identities());
      const joined = joinSystem(reports.slice(0, system.length));
      return [...(joined === undefined ? [] : [joined]), ...reports.slice(system.length)];
    },
    volumes: (document) => volumes.read(knownVolumes(document, state)),
    mounts: (document) => readMounts(host, document === undefined ? [] : mountPointsOf(document)),
    overlay: (document) => readOverlay(host, document?.wireguard ?? [], peers()),
    ha: (document) => readHa(host, document, vip()),
    async addresses() {
      const result = await host.exec({ argv: ["ip", "-j", "-d", "addr"], timeoutMs: 5_000 });
      const links = parseLinks(result.stdout);
      if (!links.ok || links.value.length === 0) return undefined;
      return links.value.flatMap((link) => globalAddresses(link).map(({ address }) => address));
    },
    hardware,
    async readiness(document) {
      const node = kubeletOf(state, document?.role);
      return node === undefined ? undefined : askReadiness(host, node.name);
    },
  };
}
