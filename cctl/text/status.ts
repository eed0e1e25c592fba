/** `cctl status` for people: what it is, how it is, what it is doing. Everything in it came from a node. */
import type { NodeAnswer } from "../../api/contract.ts";
import { type Paint, bytes, duration, printable } from "../printable.ts";

const indent = 13;

export function statusText(node: NodeAnswer, paint: Paint): string {
  const rows: [label: string, text: string][] = [];
  const add = (label: string, ...parts: readonly (string | undefined | false)[]): void => {
    const text = parts.filter((part) => typeof part === "string" && part !== "").join(", ");
    if (text !== "") rows.push([label, text]);
  };
  const is = [node.role, node.cluster === undefined ? undefined : `cluster ${printable(node.cluster)}`, node.phase];
  add("node", paint(printable(node.hostname), "bold"), ...is);
  add("health", verdict(node, paint), `up ${duration(node.health.uptimeSeconds)}`);
  for (const check of node.health.checks) {
    if (!check.ok) add("", paint(`${printable(check.name)}: ${printable(check.message ?? "not ok")}`, "red"));
  }
  const { kubernetes } = node;
  if (kubernetes !== undefined) {
    const ready = kubernetes.nodeReady;
    add(
      "kubernetes",
      printable(kubernetes.version),
      `${printable(kubernetes.service)} ${kubernetes.active ? "active" : paint("not active", "red")}`,
      ready === undefined ? undefined : ready ? "node ready" : paint("node not ready", "red"),
      kubernetes.standIn === true && paint("STAND-IN for tests, not Kubernetes", "yellow"),
    );
  }
  add("endpoint", node.endpoint === undefined ? undefined : printable(node.endpoint));
  const { booted, kernel, name } = node.os;
  add("system", printable(name), `kernel ${printable(kernel)}`, printable(booted.version), slot(booted.slot));
  const { claimedBy, unauthenticated } = node.management;
  add(
    "managed by",
    claimedBy === undefined ? paint("nobody yet", "yellow") : printable(claimedBy),
    unauthenticated === true && paint("claimed without a code", "yellow"),
  );
  add("config", node.config.state === "in-sync" ? "in-sync" : paint(node.config.state, "yellow"));
  for (const reason of node.config.reasons) add("", printable(reason));
  const { handover } = node;
  if (handover !== undefined) {
    add("hand-over", `${printable(handover.reason)}: ${printable(handover.message)}`);
    if (handover.warning !== undefined) add("", paint(printable(handover.warning), "yellow"));
  }
  const { operation } = node;
  if (operation !== undefined) {
    const doing = operation.message ?? operation.step;
    add(
      "operation",
      printable(operation.kind),
      doing === undefined ? undefined : printable(doing),
      printable(operation.id),
    );
  }
  for (const { name: array, level, state, active, expected, progressPercent, members: all = [] } of node.storage
    .arrays) {
    const members = `${active} of ${expected} members`;
    add(
      "array",
      `${printable(array)} ${printable(level)} ${printable(state)}`,
      active < expected ? paint(members, "red") : members,
      progressPercent === undefined ? undefined : `${progressPercent.toFixed(0)} %`,
    );
    for (const { serial, device, state: is } of all.filter((member) => member.state !== "active")) {
      const name = [serial === undefined ? undefined : `serial ${printable(serial)}`, printable(device ?? "")];
      add("", `${name.filter((part) => part !== undefined && part !== "").join(" ") || "a disk"}: ${is}`);
    }
  }
  for (const { name: volume, unlock, state, hasRecoveryKey } of node.storage.volumes ?? []) {
    add(
      "volume",
      `${printable(volume)} ${state === "open" ? "open" : paint(printable(state), "red")}`,
      unlock === "tpm2" ? "opened by the TPM" : "opened by its passphrase",
      unlock === "tpm2" && hasRecoveryKey === false && paint("no recovery key", "yellow"),
    );
  }
  for (const { path, source, filesystem, mounted, sizeBytes, availableBytes } of node.storage.mounts) {
    add(
      "mount",
      // What is not mounted may come from nowhere yet.
      [printable(path), source === "" ? "" : `from ${printable(source)}`, printable(filesystem)]
        .join(" ")
        .replace(/ +/g, " ")
        .trim(),
      !mounted && paint("not mounted", "red"),
      sizeBytes === undefined || availableBytes === undefined
        ? undefined
        : `${bytes(availableBytes)} of ${bytes(sizeBytes)} free`,
    );
  }
  for (const { name: link, up, addresses, listenPort, publicKey, peers } of node.overlay) {
    add(
      "overlay",
      `${printable(link)} ${up ? "up" : paint("down", "red")}`,
      ...addresses.map((address) => printable(address)),
      listenPort === undefined ? undefined : `port ${listenPort}`,
      publicKey === undefined ? undefined : `key ${printable(publicKey)}`,
    );
    for (const peer of peers) {
      const seen = peer.lastHandshake === undefined ? "no handshake yet" : `handshake ${printable(peer.lastHandshake)}`;
      const at = peer.endpoint === undefined ? undefined : `at ${printable(peer.endpoint)}`;
      const traffic =
        peer.receivedBytes === undefined || peer.sentBytes === undefined
          ? undefined
          : `received ${bytes(peer.receivedBytes)}, sent ${bytes(peer.sentBytes)}`;
      add("", `peer ${printable(peer.publicKey)}`, at, seen, traffic);
      if (peer.cause !== undefined) {
        const text = `${printable(peer.state ?? "not heard")}: ${printable(peer.cause)}`;
        add("", `  ${isQuiet(peer.state) ? text : paint(text, "red")}`);
      }
    }
  }
  if (node.ha !== undefined) {
    add("address", `${printable(node.ha.vip)}`, holding(node.ha, paint));
  }
  for (const text of endingCertificates(node)) add("certificate", paint(text, "yellow"));
  return rows.map(([label, text]) => `${label.padEnd(indent)}${text}\n`).join("");
}

const SOON_DAYS = 60;

/** Those that are alike, in one line: k0s makes a dozen in one go. A pinned one does not matter. */
function endingCertificates({ certificates = [] }: NodeAnswer): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const { name, notAfter, daysLeft, renewal } of certificates) {
    if (daysLeft >= SOON_DAYS || name === "api") continue;
    const when = daysLeft < 0 ? "ended" : `in ${daysLeft} days`;
    const key = `${when} (${printable(notAfter.slice(0, 10))}): ${printable(renewal)}`;
    groups.set(key, [...(groups.get(key) ?? []), printable(name)]);
  }
  return [...groups].map(([end, names]) => `${names.join(", ")} ${end}`);
}

function holding({ holder, others, state }: NonNullable<NodeAnswer["ha"]>, paint: Paint): string | undefined {
  const machines = (others ?? []).map((mac) => printable(mac)).join(" and ");
  if (state === "contested") {
    return paint(`MORE THAN ONE HOLDER: ${holder === true ? `this node and ${machines}` : machines}`, "red");
  }
  if (state === "unheld") return paint("held by nobody", "red");
  if (holder === undefined) return undefined;
  if (holder) return "held here";
  return machines === "" ? "not held here" : `held by ${machines}`;
}

/** Nothing is wrong with a peer that nobody sends to, or that has to call. */
const isQuiet = (state: string | undefined): boolean => state === "idle" || state === "waiting";

function verdict(node: NodeAnswer, paint: Paint): string {
  const colours = { healthy: "green", degraded: "yellow", unhealthy: "red" } as const;
  return paint(node.health.verdict, colours[node.health.verdict]);
}

function slot(name: string | undefined): string | undefined {
  return name === undefined ? undefined : `slot ${printable(name)}`;
}

/** In service, healthy, and what was applied: what `status --check` waits for. */
export function isAsWished(node: NodeAnswer): boolean {
  return node.phase === "in-service" && node.health.verdict === "healthy" && node.config.state === "in-sync";
}

/** In words, for each cluster whose controllers do not all say the same of it. */
export function clusterDifferences(nodes: readonly NodeAnswer[]): readonly string[] {
  const byCluster = new Map<string, Map<string, string[]>>();
  for (const { cluster = "", hostname, config } of nodes) {
    if (config.clusterDigest === undefined) continue;
    const digests = byCluster.get(cluster) ?? new Map<string, string[]>();
    digests.set(config.clusterDigest, [...(digests.get(config.clusterDigest) ?? []), printable(hostname)]);
    byCluster.set(cluster, digests);
  }
  return [...byCluster].flatMap(([cluster, digests]) => {
    if (digests.size < 2) return [];
    const groups = [...digests.values()].map((names) => names.join(", ")).join("; ");
    return [
      `the controllers of cluster ${printable(cluster)} do not say the same of it (alike: ${groups}): what it runs depends on who leads; cctl apply to all of them`,
    ];
  });
}
