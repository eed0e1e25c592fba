/**
 * Several nodes on one private segment, each an overlay of the installed disk: an API to its console and cctl through the
 * first card, everything between nodes through the second one, which has the default route and a fixed address, as a site
 * would give it. Both are files of systemd-networkd, laid down before the node is claimed and kept over its boots.
 */
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestImage } from "./image.ts";
import { synchronizeClock } from "./inside.ts";
import { installedSystem } from "./installed.ts";
import type { VmOptions } from "./options.ts";
import { freePort, startVm, type Vm } from "./vm.ts";

const READY_MS = 1_200_000;

export interface Site {
  /** Of the segment; machines with the same port are on it. */
  readonly lanPort: number;
  /** `192.168.77`: a /24, whose gateway .1 does not exist. */
  readonly network: string;
}

export interface MemberOptions {
  readonly name: string;
  /** Last part of its address, and of its cards' MACs; 2 to 99. */
  readonly number: number;
  readonly site: Site;
  readonly document: string;
  readonly memoryMiB?: number;
}

export interface Member {
  readonly name: string;
  /** On the segment. */
  readonly address: string;
  /** Of the card on the segment. */
  readonly mac: string;
  readonly document: string;
  vm(): Vm;
  /** Switches it on, off its own disk, which stays as it is. */
  start(): Promise<void>;
  /** Until its root shell answers; the clock is taken for synchronised. */
  ready(): Promise<void>;
  /** A file below `/etc` that is there again after a boot. */
  lay(path: string, text: string): Promise<void>;
  /** Power off at once. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

const twoDigits = (number: number): string => String(number).padStart(2, "0");

/** Path below a root, and text. */
function networks({ number, site }: MemberOptions, macs: readonly [string, string]): readonly [string, string][] {
  const outside = `[Match]
MACAddress=${macs[0]}
[Network]
DHCP=ipv4
LinkLocalAddressing=no
[DHCPv4]
UseGateway=no
UseRoutes=no
UseHostname=no
`;
  const inside = `[Match]
MACAddress=${macs[1]}
[Network]
Address=${site.network}.${number}/24
Gateway=${site.network}.1
LinkLocalAddressing=ipv6
IPv6AcceptRA=no
`;
  return [
    ["systemd/network/40-outside.network", outside],
    ["systemd/network/41-inside.network", inside],
  ];
}

/** Where `/etc` is kept: what lies there is there again after a boot. */
const ETC = ["/etc", "/var/lib/corium/etc"];

/** A machine that was not switched on yet. `directory` holds its disk. */
export async function prepareMember(image: TestImage, directory: string, options: MemberOptions): Promise<Member> {
  const { name, number, site, document } = options;
  const folder = join(directory, name);
  mkdirSync(folder, { recursive: true });
  const macs = [`52:54:00:10:00:${twoDigits(number)}`, `52:54:00:20:00:${twoDigits(number)}`] as const;
  const system = await installedSystem(image, folder);
  // The same at every start: cctl knows a node by its address.
  const hostPorts = { 7443: await freePort() };
  const machine: VmOptions = {
    name: `member-${name}`,
    memoryMiB: options.memoryMiB ?? 1280,
    disks: [system],
    forwards: [7443],
    hostPorts,
    mac: macs[0],
    lan: { port: site.lanPort, mac: macs[1] },
  };
  let running: Vm | undefined;
  const vm = (): Vm => {
    if (running === undefined) throw new Error(`${name} is switched off`);
    return running;
  };
  const lay: Member["lay"] = async (path, text) => {
    for (const root of ETC) {
      const file = `${root}/${path}`;
      await vm().shell.must(`mkdir -p ${dirname(file)}; cat >${file} <<'END'\n${text}END\n`);
    }
  };
  return {
    name,
    address: `${site.network}.${number}`,
    mac: macs[1],
    document,
    vm,
    start: async () => {
      running = await startVm(machine);
    },
    ready: async () => {
      const { shell } = vm();
      await shell.waitReady(READY_MS);
      // An installation carries it over from its medium, so that all copies of one disk would be one machine.
      const id = createHash("sha256").update(name).digest("hex").slice(0, 32);
      for (const root of ETC) await shell.must(`chmod u+w ${root}/machine-id; echo ${id} >${root}/machine-id`);
      for (const [path, text] of networks(options, macs)) await lay(path, text);
      await shell.must("until networkctl reload; do sleep 1; done", 300_000);
      await shell.must(`until ip -4 addr | grep -q ${site.network}.${number}/; do sleep 0.5; done`, 300_000);
      await synchronizeClock(shell);
    },
    lay,
    kill: async () => {
      await vm().kill();
      await vm().stop();
      running = undefined;
    },
    stop: async () => {
      await running?.stop();
      running = undefined;
    },
  };
}

/** Addresses of the private segment that are on the node's own links. */
export async function addressesOf(member: Member): Promise<readonly string[]> {
  const text = await member.vm().shell.must("ip -4 -j addr");
  const links = JSON.parse(text) as readonly { readonly addr_info: readonly { readonly local: string }[] }[];
  return links.flatMap((link) => link.addr_info.map(({ local }) => local));
}
