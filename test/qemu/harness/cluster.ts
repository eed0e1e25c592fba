/**
 * Several nodes on one private segment, each an overlay of the installed disk: an API to its console and cctl through the
 * first card, everything between nodes through the second one, which has the default route and a fixed address, as a site
 * would give it. Both come as systemd credentials (systemd-network-generator(8)).
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
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
  /** Power off at once. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

const twoDigits = (number: number): string => String(number).padStart(2, "0");

const credential = (name: string, text: string): string =>
  `io.systemd.credential.binary:network.network.${name}=${Buffer.from(text).toString("base64")}`;

function networks({ number, site }: MemberOptions, macs: readonly [string, string]): readonly string[] {
  const outside = `[Match]\nMACAddress=${macs[0]}\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\n[DHCPv4]\nUseGateway=no\nUseRoutes=no\nUseHostname=no\n`;
  const inside = `[Match]\nMACAddress=${macs[1]}\n[Network]\nAddress=${site.network}.${number}/24\nGateway=${site.network}.1\nLinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n`;
  return [credential("40-outside", outside), credential("41-inside", inside)];
}

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
    oemStrings: networks(options, macs),
  };
  let running: Vm | undefined;
  const vm = (): Vm => {
    if (running === undefined) throw new Error(`${name} is switched off`);
    return running;
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
      await vm().shell.waitReady(READY_MS);
      await synchronizeClock(vm().shell);
    },
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
