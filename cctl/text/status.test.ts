import { describe, expect, test } from "bun:test";
import type { NodeAnswer } from "../../api/contract.ts";
import { coloured, plain } from "../printable.ts";
import { isAsWished, statusText } from "./status.ts";

const node: NodeAnswer = {
  hostname: "node1",
  machineID: "0".repeat(32),
  bootstrapped: true,
  phase: "in-service",
  role: "single",
  cluster: "shop",
  endpoint: "k8s.example",
  os: { name: "Debian GNU/Linux 13", kernel: "6.12.1", booted: { slot: "A", version: "0.1.0" } },
  kubernetes: { version: "v1.36.4+k0s.1", service: "k0scontroller", active: true, nodeReady: true },
  health: { verdict: "healthy", uptimeSeconds: 7265, checks: [{ name: "state", ok: true }] },
  management: { claimedBy: "SHA256:abc" },
  storage: {
    arrays: [{ name: "data", level: "raid1", state: "clean", active: 2, expected: 2 }],
    mounts: [
      {
        path: "/var/lib/k0s",
        source: "/dev/md/data",
        filesystem: "ext4",
        mounted: true,
        sizeBytes: 1_000_000_000,
        availableBytes: 900_000_000,
      },
    ],
  },
  overlay: [
    {
      name: "wg0",
      up: true,
      addresses: ["10.9.0.1/24"],
      publicKey: "PUB=",
      listenPort: 51820,
      peers: [{ publicKey: "PEER=", endpoint: "1.2.3.4:51820" }],
    },
  ],
  config: { state: "in-sync", reasons: [] },
};

describe("statusText", () => {
  test("a healthy node", () => {
    expect(statusText(node, plain)).toBe(`node         node1, single, cluster shop, in-service
health       healthy, up 2h1m
kubernetes   v1.36.4+k0s.1, k0scontroller active, node ready
endpoint     k8s.example
system       Debian GNU/Linux 13, kernel 6.12.1, 0.1.0, slot A
managed by   SHA256:abc
config       in-sync
array        data raid1 clean, 2 of 2 members
mount        /var/lib/k0s from /dev/md/data ext4, 900 MB of 1.0 GB free
overlay      wg0 up, 10.9.0.1/24, port 51820, key PUB=
             peer PEER=, at 1.2.3.4:51820, no handshake yet
`);
  });

  test("a peer that is not heard: why, as far as the node can tell", () => {
    const silent = { publicKey: "PEER=", endpoint: "1.2.3.4:51820", receivedBytes: 0, sentBytes: 296 } as const;
    const peers = [{ ...silent, state: "silent", cause: "no handshake ever with 1.2.3.4:51820" } as const];
    const text = statusText({ ...node, overlay: node.overlay.map((link) => ({ ...link, peers })) }, plain);
    expect(text.slice(text.indexOf("             peer")))
      .toBe(`             peer PEER=, at 1.2.3.4:51820, no handshake yet, received 0 B, sent 296 B
               silent: no handshake ever with 1.2.3.4:51820
`);
  });

  test("a stand-in for k0s is never taken for Kubernetes", () => {
    const kubernetes = { version: "v1.36.4+k0s.1-sim", service: "k0scontroller", active: true, standIn: true } as const;
    expect(statusText({ ...node, kubernetes }, plain)).toContain("active, STAND-IN for tests, not Kubernetes\n");
  });

  test("what is wrong is said where it is", () => {
    const text = statusText(
      {
        ...node,
        health: {
          verdict: "degraded",
          uptimeSeconds: 1,
          checks: [{ name: "state", ok: false, message: "not mounted" }],
        },
        management: { claimedBy: "SHA256:abc", unauthenticated: true },
        storage: {
          arrays: [
            {
              name: "data",
              level: "raid1",
              state: "degraded",
              active: 1,
              expected: 2,
              progressPercent: 41.6,
              members: [
                { device: "/dev/vdb", serial: "A", role: 0, state: "active" },
                { device: "/dev/vdd", serial: "S", role: 1, state: "rebuilding" },
                { serial: "B", state: "missing" },
              ],
            },
          ],
          mounts: [{ path: "/srv", source: "x", filesystem: "xfs", mounted: false }],
        },
        config: { state: "drifted", reasons: ["/etc/hosts differs\u001b[2J"] },
        handover: { status: "False", reason: "Manual", message: "by hand", since: "x", warning: "again" },
        operation: { id: "op1", kind: "apply", message: "waiting for k0s" },
      },
      plain,
    );
    for (const line of [
      "health       degraded, up 1s\n             state: not mounted\n",
      "managed by   SHA256:abc, claimed without a code\n",
      "config       drifted\n             /etc/hosts differs\\x1b[2J\n",
      "hand-over    Manual: by hand\n             again\n",
      "operation    apply, waiting for k0s, op1\n",
      "array        data raid1 degraded, 1 of 2 members, 42 %\n" +
        "             serial S /dev/vdd: rebuilding\n             serial B: missing\n",
      "mount        /srv from x xfs, not mounted\n",
    ]) {
      expect(text).toContain(line);
    }
  });

  test("colour changes nothing but colour", () => {
    // oxlint-disable-next-line no-control-regex
    expect(statusText(node, coloured).replace(/\u001b\[\d+m/g, "")).toBe(statusText(node, plain));
    expect(statusText(node, coloured)).not.toBe(statusText(node, plain));
  });
});

test("--check wants a node in service, healthy and in-sync", () => {
  expect(isAsWished(node)).toBe(true);
  expect(isAsWished({ ...node, phase: "maintenance" })).toBe(false);
  expect(isAsWished({ ...node, health: { ...node.health, verdict: "degraded" } })).toBe(false);
  expect(isAsWished({ ...node, config: { state: "pending", reasons: [] } })).toBe(false);
});
