import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { Secret } from "../kit/secret.ts";
import { renderNode } from "../provision/render.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { canonicalJson } from "./canonical.ts";
import { type HashedInputs, inputHash, secretFingerprints } from "./input-hash.ts";
import { RENDER_VERSION } from "./render-version.ts";

const addon = (name: string) => ({ name, chart: `oci://r.example.com/${name}`, namespace: "default" });
const inputs = (more: Partial<HashedInputs> = {}): HashedInputs => ({
  document: makeDocument({ addons: [addon("a"), addon("b")] }),
  secrets: {},
  fingerprintKey: "key",
  addresses: { nodeIp: "192.0.2.2" },
  hostname: "c1",
  k0sVersion: "v1.36.3+k0s.2",
  ...more,
});
const secret = (field: string, text: string) => secretFingerprints(new Map([[field, new Secret(field, text)]]), "key");

test("another order of a named list, or a spelt-out default, is the same input", () => {
  const reordered = makeDocument({ addons: [addon("b"), addon("a")] });
  expect(inputHash(inputs({ document: reordered }))).toBe(inputHash(inputs()));
  const spelt = {
    ...inputs().document,
    backup: { enabled: false, schedule: "daily", path: "/var/lib/corium/backups", keep: 7 },
  };
  expect(inputHash(inputs({ document: spelt }))).toBe(inputHash(inputs()));
});

test("each input counts", () => {
  const others: Partial<HashedInputs>[] = [
    { document: makeDocument({ addons: [addon("a")] }) },
    { secrets: secret("ha.authPassFrom", "x") },
    { addresses: { nodeIp: "192.0.2.3" } },
    { hostname: "c2" },
    { k0sVersion: "v1.36.4+k0s.0" },
    { isHandedOver: true },
    { renderVersion: RENDER_VERSION + 1 },
  ];
  const hashes = new Set([inputs(), ...others.map(inputs)].map(inputHash));
  expect(hashes.size).toBe(others.length + 1);
});

test("a rotated secret counts, a first-boot one never", () => {
  const hash = (field: string, text: string) => inputHash(inputs({ secrets: secret(field, text) }));
  expect(hash("ha.authPassFrom", "a")).not.toBe(hash("ha.authPassFrom", "b"));
  expect(hash("join.tokenFrom", "a")).toBe(inputHash(inputs()));
  expect(hash("luks[data].passphraseFrom", "a")).toBe(inputHash(inputs()));
});

/**
 * What is rendered, pinned together with renderVersion. If this fails the same document renders otherwise than in the
 * last release: raise RENDER_VERSION, and only then take the new fingerprint over (before the first release there is
 * nothing to raise it over). Inputs are widened when a change
 * was missed. Rendered twice under two secrets: only what does not depend on them is pinned.
 */
test("the same inputs render the same as in the last release, or renderVersion is raised", () => {
  const wide = (authPass: string, privateKey: string) =>
    makeDocument({
      role: "controller+worker",
      cluster: { name: "harbour", endpoint: "192.0.2.9", subjectAltNames: ["k8s.example.net"] },
      network: { podCIDR: "10.200.0.0/16", serviceCIDR: "10.201.0.0/16", cni: "calico" },
      node: { name: "c1", labels: { b: "2", a: "1" }, taints: [{ key: "k", effect: "NoSchedule" }] },
      addons: [
        {
          ...addon("a"),
          version: "1.10",
          values: { on: "no", list: [1, "1"] },
          repository: { name: "r", url: "https://charts.example.com" },
        },
      ],
      manifests: [{ name: "site", files: [{ name: "ns.yaml", content: "apiVersion: v1\nkind: Namespace\n" }] }],
      ha: {
        enabled: true,
        virtualIP: "192.0.2.9/24",
        authPass,
        virtualRouterID: 60,
        interface: "eno1",
        unicastPeers: ["192.0.2.3"],
      },
      upgrades: { automatic: "download", schedule: "weekly" },
      raid: [
        {
          name: "data",
          level: 1,
          devices: ["/dev/vdb", "/dev/vdc"],
          spares: [],
          filesystem: "ext4",
          mountPoint: "/var/lib/k0s",
          wipe: false,
        },
      ],
      wireguard: [
        { name: "wg0", address: ["10.9.0.1/24"], nodeAddress: true, generateKey: false, privateKey, peers: [] },
      ],
      k0s: { patch: { spec: { konnectivity: { agentPort: 8232 } } } },
    });
  const addresses = {
    apiAddress: "192.0.2.2",
    peerAddress: "192.0.2.2",
    nodeIp: "192.0.2.2",
    unicastSourceIp: "192.0.2.2",
  };
  const render = (authPass: string, privateKey: string) =>
    new Map(
      renderNode({ document: wide(authPass, privateKey), hostname: "c1", machineId: "0123", addresses }).files.map(
        (file) => [file.path, file] as const,
      ),
    );
  const [one, two] = [render("a", "k1"), render("b", "k2")];
  const agreed = [...one.values()].filter((file) => canonicalJson(file) === canonicalJson(two.get(file.path)));
  const digest = createHash("sha256").update(canonicalJson(agreed)).digest("hex").slice(0, 16);
  expect(agreed.map((file) => file.path)).toContain("/etc/systemd/network/50-corium-wg0.netdev");
  // No secret is in what a renderer makes, so nothing may differ.
  expect(agreed.length).toBe(one.size);
  expect({ renderVersion: RENDER_VERSION, digest }).toEqual({ renderVersion: 1, digest: "8b0b6eb0518ecdd4" });
});
