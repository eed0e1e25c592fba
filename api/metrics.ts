/** What the node says of itself, as Prometheus reads it (text format 0.0.4). Pure. What is not known has no line. */
import type { NodeAnswer } from "./contract.ts";

export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];

/** One family of samples; none at all where there is nothing to tell. */
function family(
  name: string,
  help: string,
  samples: readonly Sample[],
  type: "gauge" | "counter" = "gauge",
): readonly string[] {
  if (samples.length === 0) return [];
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(([labels, value]) => `${name}${labelsOf(labels)} ${value}`),
  ];
}

function labelsOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escape(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escape = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

/** 1 for the state that something is in. */
const bit = (isSo: boolean): number => (isSo ? 1 : 0);

export function metricsOf(node: NodeAnswer): string {
  const { arrays, mounts, volumes = [] } = node.storage;
  const peers = node.overlay.flatMap(({ name, peers: of }) => of.map((peer) => ({ name, ...peer })));
  const { os, health, config, kubernetes } = node;
  const lines = [
    ...family("corium_build_info", "1, with what runs as labels.", [
      [{ version: os.booted.version, slot: os.booted.slot ?? "", kernel: os.kernel }, 1],
    ]),
    ...family("corium_uptime_seconds", "Since the machine was started.", [[{}, health.uptimeSeconds]]),
    ...family("corium_healthy", "1 when every check passes.", [[{}, bit(health.verdict === "healthy")]]),
    ...family(
      "corium_check_ok",
      "1 for a check that passes.",
      health.checks.map(({ name, ok }) => [{ check: name }, bit(ok)]),
    ),
    ...family("corium_config_state", "1, with the state of the configuration as label.", [
      [{ state: config.state }, 1],
    ]),
    ...family(
      "corium_handover",
      "1 when GitOps has the CNI, with the reason as label.",
      node.handover === undefined ? [] : [[{ reason: node.handover.reason }, bit(node.handover.status === "True")]],
    ),
    ...family(
      "corium_operation_running",
      "1 while an operation runs.",
      node.operation === undefined ? [] : [[{ kind: node.operation.kind }, 1]],
    ),
    ...family(
      "corium_kubernetes_active",
      "1 while the service of k0s runs.",
      kubernetes === undefined
        ? []
        : [[{ service: kubernetes.service, version: kubernetes.version }, bit(kubernetes.active)]],
    ),
    ...family(
      "corium_array_state",
      "1, with the state of the array as label.",
      arrays.map(({ name, level, state }) => [{ array: name, level, state }, 1]),
    ),
    ...family(
      "corium_array_members_active",
      "Members that have all of the array's content.",
      arrays.map(({ name, active }) => [{ array: name }, active]),
    ),
    ...family(
      "corium_array_members_expected",
      "Members that the array has when it is whole.",
      arrays.map(({ name, expected }) => [{ array: name }, expected]),
    ),
    ...family(
      "corium_array_progress_ratio",
      "How much of a rebuild or check is done.",
      arrays.flatMap(({ name, progressPercent }): Sample[] =>
        progressPercent === undefined ? [] : [[{ array: name }, progressPercent / 100]],
      ),
    ),
    ...family(
      "corium_volume_open",
      "1 for an encrypted volume that is open.",
      volumes.map(({ name, state }) => [{ volume: name }, bit(state === "open")]),
    ),
    ...family(
      "corium_mounted",
      "1 for a mount of the document that is there.",
      mounts.map(({ path, mounted }) => [{ mount: path }, bit(mounted)]),
    ),
    ...family(
      "corium_mount_size_bytes",
      "Of the filesystem.",
      mounts.flatMap(({ path, sizeBytes }): Sample[] =>
        sizeBytes === undefined ? [] : [[{ mount: path }, sizeBytes]],
      ),
    ),
    ...family(
      "corium_mount_available_bytes",
      "What is free for use.",
      mounts.flatMap(({ path, availableBytes }): Sample[] =>
        availableBytes === undefined ? [] : [[{ mount: path }, availableBytes]],
      ),
    ),
    ...family(
      "corium_certificate_not_after_timestamp_seconds",
      "When a certificate ends, as a Unix time.",
      (node.certificates ?? []).map(({ name, notAfter }) => [{ certificate: name }, Date.parse(notAfter) / 1000]),
    ),
    ...family(
      "corium_vip_held",
      "1 while this node has the virtual address.",
      node.ha?.holder === undefined ? [] : [[{ address: node.ha.vip }, bit(node.ha.holder)]],
    ),
    ...family(
      "corium_vip_holders",
      "Machines that have the virtual address, as this node sees them; it should be 1.",
      node.ha?.holder === undefined || node.ha.others === undefined
        ? []
        : [[{ address: node.ha.vip }, node.ha.others.length + bit(node.ha.holder)]],
    ),
    ...family(
      "corium_overlay_up",
      "1 for an overlay whose interface is up.",
      node.overlay.map(({ name, up }) => [{ overlay: name }, bit(up)]),
    ),
    ...family(
      "corium_overlay_handshake_timestamp_seconds",
      "When a peer was last heard, as a Unix time.",
      peers.flatMap(({ name, publicKey, lastHandshake }): Sample[] => {
        const atMs = lastHandshake === undefined ? Number.NaN : Date.parse(lastHandshake);
        return Number.isNaN(atMs) ? [] : [[{ overlay: name, peer: publicKey }, atMs / 1000]];
      }),
    ),
    ...family(
      "corium_overlay_peer_state",
      "1, with how it stands with the peer as label.",
      peers.flatMap(({ name, publicKey, state }): Sample[] =>
        state === undefined ? [] : [[{ overlay: name, peer: publicKey, state }, 1]],
      ),
    ),
    ...family(
      "corium_overlay_received_bytes_total",
      "From the peer, since the interface is there.",
      peers.flatMap(({ name, publicKey, receivedBytes }): Sample[] =>
        receivedBytes === undefined ? [] : [[{ overlay: name, peer: publicKey }, receivedBytes]],
      ),
      "counter",
    ),
    ...family(
      "corium_overlay_sent_bytes_total",
      "To the peer, since the interface is there.",
      peers.flatMap(({ name, publicKey, sentBytes }): Sample[] =>
        sentBytes === undefined ? [] : [[{ overlay: name, peer: publicKey }, sentBytes]],
      ),
      "counter",
    ),
  ];
  return `${lines.join("\n")}\n`;
}
