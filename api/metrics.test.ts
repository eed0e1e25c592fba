import { expect, test } from "bun:test";
import type { NodeAnswer } from "./contract.ts";
import { metricsOf } from "./metrics.ts";

const node: NodeAnswer = {
  hostname: "n1",
  machineID: "m",
  bootstrapped: true,
  phase: "in-service",
  os: { name: "Corium", kernel: "6.12", booted: { version: "1.2.3", slot: "A" } },
  health: {
    verdict: "degraded",
    uptimeSeconds: 61,
    checks: [{ name: 'array "data"', ok: false, message: "1 of 2" }],
  },
  management: {},
  storage: {
    arrays: [{ name: "data", level: "raid1", state: "rebuilding", active: 1, expected: 2, progressPercent: 12.5 }],
    mounts: [
      { path: "/srv/a", source: "/dev/md0", filesystem: "ext4", mounted: true, sizeBytes: 10, availableBytes: 4 },
    ],
    volumes: [{ name: "vault", unlock: "tpm2", state: "locked" }],
  },
  overlay: [
    {
      name: "wg0",
      up: true,
      addresses: [],
      peers: [
        { publicKey: "K=", lastHandshake: "2026-01-02T03:04:05Z", state: "up", receivedBytes: 92, sentBytes: 180 },
        { publicKey: "never=" },
      ],
    },
  ],
  ha: { vip: "192.0.2.9", holder: true, others: ["52:54:00:00:00:02"], state: "contested" },
  config: { state: "in-sync", reasons: [] },
};

test("a degraded array, a locked volume and a peer's last handshake are numbers", () => {
  const text = metricsOf(node);
  for (const line of [
    'corium_build_info{version="1.2.3",slot="A",kernel="6.12"} 1',
    "corium_healthy 0",
    'corium_check_ok{check="array \\"data\\""} 0',
    'corium_array_state{array="data",level="raid1",state="rebuilding"} 1',
    'corium_array_members_active{array="data"} 1',
    'corium_array_members_expected{array="data"} 2',
    'corium_array_progress_ratio{array="data"} 0.125',
    'corium_volume_open{volume="vault"} 0',
    'corium_mount_available_bytes{mount="/srv/a"} 4',
    'corium_overlay_handshake_timestamp_seconds{overlay="wg0",peer="K="} 1767323045',
    'corium_vip_held{address="192.0.2.9"} 1',
    'corium_vip_holders{address="192.0.2.9"} 2',
    'corium_overlay_peer_state{overlay="wg0",peer="K=",state="up"} 1',
    'corium_overlay_received_bytes_total{overlay="wg0",peer="K="} 92',
    'corium_overlay_sent_bytes_total{overlay="wg0",peer="K="} 180',
  ])
    expect(text.split("\n")).toContain(line);
  expect(text).not.toContain("never=");
  expect(text).not.toContain("corium_kubernetes_active");
});

test("every line is one that Prometheus takes, and each family is told once", () => {
  const lines = metricsOf(node).trimEnd().split("\n");
  const label = '[a-z]+="(?:[^"\\\\]|\\\\.)*"';
  const sample = new RegExp(`^([a-z_]+)(?:\\{${label}(?:,${label})*\\})? [0-9.e+-]+$`);
  const told = new Set<string>();
  for (const line of lines) {
    const [, kind, name = ""] = /^# (HELP|TYPE) (\S+) /.exec(line) ?? [];
    if (kind === "HELP") {
      expect(told.has(name)).toBe(false);
      told.add(name);
    } else if (kind === undefined) expect([...told].at(-1)).toBe(sample.exec(line)?.[1]);
  }
  expect(told.size).toBeGreaterThan(12);
});

test("the hand-over of the CNI is 1 when GitOps has it; no line where there is none", () => {
  expect(metricsOf(node)).not.toContain("corium_handover");
  const handover = { status: "True", reason: "HandedOver", message: "", since: "" } as const;
  expect(metricsOf({ ...node, handover })).toContain('corium_handover{reason="HandedOver"} 1\n');
  const waiting = { ...handover, status: "False", reason: "WaitingForArgoCD" } as const;
  expect(metricsOf({ ...node, handover: waiting })).toContain('corium_handover{reason="WaitingForArgoCD"} 0\n');
});
