/** Asks the network, before anything is decided, whether what the document wants is there already. Changes nothing. */
import type { Document } from "../../config/document.ts";
import { secretFields } from "../../config/secrets.ts";
import type { Host } from "../../kit/ports.ts";
import { hearAdvertisements, whoAnswers } from "../../k0s/vip/driver.ts";
import { splitEndpoint } from "../../wireguard/endpoints.ts";
import { ownAddressOn, vrrpLink } from "../addresses.ts";
import type { Network } from "../facts.ts";
import type { Probes } from "../lint.ts";
import type { ResolvedName } from "../secrets.ts";

/**
 * At most a few seconds. `isFounding`: neither does it join, nor did k0s of this very node ever start; then it is asked
 * whether the cluster is there already.
 */
export async function probeNetwork(
  host: Host,
  document: Document,
  network: Network,
  isFounding: boolean,
): Promise<Probes> {
  const [endpointAddresses, overlayEndpoints, secretServers] = await Promise.all([
    resolveEndpoint(host, document),
    resolveNames(host, peerNames(document)),
    resolveNames(host, secretServerNames(document)),
  ]);
  const resolved = {
    overlayEndpoints,
    ...(endpointAddresses === undefined ? {} : { endpointAddresses }),
    ...(secretServers.length === 0 ? {} : { secretServers }),
  };
  const vip = document.ha.virtualIP?.split("/")[0];
  if (!document.ha.enabled || vip === undefined || !isFounding) return { answering: [], ...resolved };
  const targets = [vip, ...document.ha.unicastPeers].flatMap((address) =>
    [6443, 9443].map((port) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`)),
  );
  const link = vrrpLink(document, network);
  const [answers, holders, heard] = await Promise.all([
    Promise.all(targets.map((target) => isAnswering(host, target))),
    link === undefined ? undefined : whoAnswers(host, askedOn(link.name, vip, ownAddressOn(link, vip))),
    link === undefined ? undefined : hearAdvertisements(host, link.name),
  ]);
  return {
    answering: targets.filter((_, index) => answers[index] === true),
    ...(holders === undefined ? {} : { holders }),
    ...(heard === undefined ? {} : { heard }),
    ...resolved,
  };
}

const askedOn = (device: string, address: string, own: string | undefined) => ({
  device,
  address,
  ...(own === undefined ? {} : { own }),
});

const isName = (host: string): boolean => !host.includes(":") && !/^[\d.]+$/.test(host);

async function resolveEndpoint(host: Host, { ha, cluster }: Document): Promise<readonly string[] | undefined> {
  const { endpoint } = cluster;
  if (!ha.enabled || ha.virtualIP === undefined || endpoint === undefined || !isName(endpoint)) return undefined;
  return resolveName(host, endpoint);
}

const peerNames = ({ wireguard }: Document): readonly string[] =>
  wireguard.flatMap(({ peers }) => peers.flatMap(({ endpoint }) => splitEndpoint(endpoint ?? "")?.host ?? []));

/** Without an overlay they are where they are. */
const secretServerNames = (document: Document): readonly string[] =>
  document.wireguard.length === 0
    ? []
    : secretFields(document).flatMap(({ source }) => URL.parse(source?.url ?? "")?.hostname ?? []);

/** Those that resolve: an overlay comes up with the others too. */
async function resolveNames(host: Host, hosts: readonly string[]): Promise<readonly ResolvedName[]> {
  const names = new Set(hosts.filter(isName));
  return Promise.all([...names].map(async (name) => ({ name, addresses: await resolveName(host, name, 5_000) })));
}

/** Whatever speaks there, even a broken TLS, is somebody. */
async function isAnswering(host: Host, target: string): Promise<boolean> {
  const answer = await host.http({ url: `https://${target}/version`, timeoutMs: 3_000, maxBytes: 65_536 });
  return answer.ok || !["refused", "timeout", "dns", "unreachable"].includes(answer.error.code);
}

async function resolveName(host: Host, name: string, timeoutMs = 15_000): Promise<readonly string[]> {
  const ran = await host.exec({ argv: ["getent", "ahosts", name], timeoutMs });
  return [...new Set([...ran.stdout.matchAll(/^(\S+)\s/gm)].map((match) => match[1] ?? ""))];
}
