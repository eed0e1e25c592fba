/**
 * What is rendered, pinned together with renderVersion. If this fails, the same document renders otherwise than in the
 * last release: raise RENDER_VERSION, and only then take the new fingerprint over (before the first release there is
 * nothing to raise it over). Inputs are widened when a change was missed.
 */
import { expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import { type RenderedNode, type RenderInput, renderNode } from "../provision/render.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { canonicalJson } from "./canonical.ts";
import { RENDER_VERSION } from "./render-version.ts";
import { sha256Of } from "../kit/sha256.ts";

const PINNED = { renderVersion: 1, fingerprint: "238bec28793860f9" };

interface Secrets {
  readonly authPass: string;
  readonly privateKey: string;
  readonly presharedKey: string;
  readonly passphrase: string;
  readonly token: string;
}

const secretsOf = (mark: string): Secrets => ({
  authPass: `pass-${mark}`,
  privateKey: `private-${mark}`,
  presharedKey: `preshared-${mark}`,
  passphrase: `passphrase-${mark}`,
  token: `token-${mark}`,
});

const addon = { name: "a", chart: "oci://r.example.com/a", namespace: "default" };
const disk = { filesystem: "ext4", wipe: false } as const;

/** A controller with everything, a worker that joins, and a node alone with both families. */
const documents = ({ authPass, privateKey, presharedKey, passphrase, token }: Secrets): readonly Document[] => [
  makeDocument({
    role: "controller+worker",
    cluster: { name: "harbour", endpoint: "192.0.2.9", subjectAltNames: ["k8s.example.net"] },
    network: { podCIDR: "10.200.0.0/16", serviceCIDR: "10.201.0.0/16", cni: "calico" },
    node: { name: "c1", labels: { b: "2", a: "1" }, taints: [{ key: "k", effect: "NoSchedule" }] },
    addons: [
      {
        ...addon,
        version: "1.10",
        values: { on: "no", list: [1, "1"], text: "a\nb\n" },
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
    disks: [{ ...disk, name: "media", device: "/dev/vdd", mountPoint: "/srv/media" }],
    raid: [
      {
        ...disk,
        name: "data",
        level: 1,
        devices: ["/dev/vdb", "/dev/vdc"],
        spares: [],
        mountPoint: "/var/lib/k0s",
      },
    ],
    luks: [
      { ...disk, name: "vault", device: "/dev/vde", unlock: "tpm2", mountPoint: "/srv/vault" },
      { ...disk, name: "attic", device: "/dev/vdf", unlock: "passphrase", passphrase, mountPoint: "/srv/attic" },
    ],
    wireguard: [
      {
        name: "wg0",
        address: ["10.9.0.1/24"],
        listenPort: 51_820,
        mtu: 1380,
        nodeAddress: true,
        generateKey: false,
        privateKey,
        peers: [
          {
            publicKey: "p",
            presharedKey,
            endpoint: "hub.example.net:51820",
            allowedIPs: ["10.9.0.0/24"],
            persistentKeepalive: 25,
          },
        ],
      },
    ],
    k0s: { patch: { spec: { konnectivity: { agentPort: 8232 } } } },
  }),
  makeDocument({ role: "worker", node: { labels: {}, taints: [] }, join: { token } }),
  makeDocument({
    role: "single",
    network: { podCIDR: "10.1.0.0/16,fd01::/108", serviceCIDR: "10.2.0.0/16,fd02::/112", cni: "kuberouter" },
  }),
];

const addresses = {
  apiAddress: "192.0.2.2",
  peerAddress: "192.0.2.2",
  nodeIp: "192.0.2.2",
  unicastSourceIp: "192.0.2.2",
};

type Renderer = (input: RenderInput) => RenderedNode;

/** Each value of what is rendered by where it stands: `0.files./etc/hosts.mode`. */
function valuesOf(render: Renderer, secrets: Secrets): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [at, document] of documents(secrets).entries()) {
    const node = render({ document, hostname: "c1", machineId: "0123456789abcdef", addresses });
    const { files, ...rest } = node;
    for (const [name, value] of Object.entries(rest)) values.set(`${at}.${name}`, canonicalJson(value));
    for (const { path, ...file } of files) {
      for (const [name, value] of Object.entries(file)) values.set(`${at}.files.${path}.${name}`, canonicalJson(value));
    }
  }
  return values;
}

/** Of what two renderings under two different secrets agree on; the rest is named. */
function fingerprintOf(render: Renderer): { readonly fingerprint: string; readonly differing: readonly string[] } {
  const [one, two] = [valuesOf(render, secretsOf("one")), valuesOf(render, secretsOf("two"))];
  const paths = [...new Set([...one.keys(), ...two.keys()])].toSorted();
  const agreed = paths.filter((path) => one.get(path) === two.get(path));
  const text = canonicalJson(agreed.map((path) => [path, one.get(path)]));
  return {
    fingerprint: sha256Of(text).slice(0, 16),
    differing: paths.filter((path) => !agreed.includes(path)),
  };
}

test("the same inputs render the same as in the last release, or renderVersion is raised", () => {
  const { fingerprint, differing } = fingerprintOf(renderNode);
  // No secret is in what the renderer makes, so nothing may differ.
  expect(differing).toEqual([]);
  expect({ renderVersion: RENDER_VERSION, fingerprint }).toEqual(PINNED);
});

test("every room that renders is among the inputs", () => {
  const paths = [...valuesOf(renderNode, secretsOf("one")).keys()].join("\n");
  for (const part of [
    "k0s.yaml",
    "join-token",
    "manifests/site",
    "mdadm.conf.d",
    "crypttab",
    ".mount",
    "50-corium-wg0.netdev",
    ".psk",
    "corium-upgrade.timer",
    "/etc/hosts",
  ]) {
    expect(paths).toContain(part);
  }
});

type Files = RenderedNode["files"];
const onFiles =
  (change: (files: Files) => Files): Renderer =>
  (input) => {
    const node = renderNode(input);
    return { ...node, files: change(node.files) };
  };

test.each<readonly [string, Renderer]>([
  [
    "a letter of one file",
    onFiles((files) => files.map((file) => ({ ...file, content: file.content.replace("k8s", "K8s") }))),
  ],
  [
    "a line at an end",
    onFiles((files) => files.map((file, at) => (at === 3 ? { ...file, content: `${file.content}\n` } : file))),
  ],
  ["a mode", onFiles((files) => files.map((file) => ({ ...file, mode: file.mode === 0o640 ? 0o600 : file.mode })))],
  ["an owner", onFiles((files) => files.map(({ path, mode, content }) => ({ path, mode, content })))],
  ["a file more", onFiles((files) => [...files, { path: "/etc/corium/new", mode: 0o644, content: "" }])],
  ["a file less", onFiles((files) => files.slice(1))],
  ["another path", onFiles((files) => files.map((file) => ({ ...file, path: file.path.replace("50-", "51-") })))],
  [
    "an argument of k0s",
    (input) => ({ ...renderNode(input), argv: renderNode(input).argv.map((one) => [...one, "--debug"]) }),
  ],
  ["a unit", (input) => ({ ...renderNode(input), units: renderNode(input).units.slice(1) })],
])("a renderer that was changed has another fingerprint: %s", (_what, mutated) => {
  expect(fingerprintOf(mutated).fingerprint).not.toBe(PINNED.fingerprint);
});

test("a renderer that lets a secret out is found by it", () => {
  const leaking: Renderer = (input) => {
    const node = renderNode(input);
    const content = input.document.ha.authPass ?? "";
    return { ...node, files: [...node.files, { path: "/etc/corium/leak", mode: 0o600, content }] };
  };
  expect(fingerprintOf(leaking).differing).toEqual(["0.files./etc/corium/leak.content"]);
});
