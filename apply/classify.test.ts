import { describe, expect, test } from "bun:test";
import { parseDocument } from "../config/load.ts";
import type { Document } from "../config/document.ts";
import type { ChartStanding } from "../k0s/charts.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { diffDocuments } from "./classify.ts";
import { diffFields } from "./fields.ts";
import { documentShape } from "./shape.ts";

const options = { fingerprintKey: "key" };
const addon = (name: string, more: object = {}) => ({
  name,
  chart: `oci://r.example.com/${name}`,
  namespace: "default",
  ...more,
});

/** A value other than what any document has, for each path of the shape: entries are named `x`. */
function mutations(
  shape: object,
  path = "",
  build: (value: unknown) => object = (v) => v as object,
): readonly { path: string; class: string; patch: (value: unknown) => object }[] {
  return Object.entries(shape).flatMap(([key, inner]: [string, unknown]) => {
    const at = path === "" ? key : `${path}.${key}`;
    const put = (value: unknown): object => build({ [key]: value });
    if (typeof inner === "string") return [{ path: at, class: inner, patch: put }];
    const list = inner as { entry?: string; fields: object };
    if (typeof list.entry !== "string") return mutations(inner as object, at, put);
    const { name: _, ...fields } = list.fields as Record<string, unknown>;
    return mutations(fields, `${at}[x]`, (value) => put([{ name: "x", ...(value as object) }]));
  });
}

function merge(a: unknown, b: unknown): unknown {
  if (Array.isArray(a) && Array.isArray(b) && a.length === 1) return [merge(a[0], b[0])];
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(b)) return b;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return Object.fromEntries([...keys].map((key) => [key, key in right ? merge(left[key], right[key]) : left[key]]));
}

const entry = { name: "x" };
const full = {
  ...makeDocument({ role: "controller" }),
  addons: [addon("x")],
  manifests: [{ name: "x", files: [{ name: "x", content: "a" }] }],
  raid: [entry],
  luks: [entry],
  disks: [entry],
  zfs: [entry],
  wireguard: [entry],
};

describe("B165: the dry run says 'no changes' while the apply changes something", () => {
  for (const { path, class: wanted, patch } of mutations(documentShape)) {
    test(`a change of ${path} is found, and only it`, () => {
      const changed = merge(full, patch("another")) as object;
      expect(diffFields(full, changed).changes.map((one) => ({ path: one.path, class: one.class }))).toEqual([
        { path, class: wanted as "safe" },
      ]);
    });
  }

  test("every field of the schema is in the shape", () => {
    expect(mutations(documentShape).length).toBeGreaterThan(90);
  });
});

test("B111: dropping addons: is not read as 'remove everything': refused, naming each and the way", () => {
  const baseline = makeDocument({ addons: [addon("cert-manager"), addon("metallb")] });
  const diff = diffDocuments(baseline, makeDocument(), options);
  expect(diff.result).toBe("refused");
  expect(diff.removed.map(({ path }) => path)).toEqual(["addons[cert-manager]", "addons[metallb]"]);
  expect(diff.removed[0]?.hint).toContain("kubectl delete chart -n kube-system k0s-addon-chart-cert-manager");
  expect(diff.restarts).toEqual([]);
});

describe("a chart that vanishes", () => {
  const both = makeDocument({ role: "controller", addons: [addon("cert-manager"), addon("metallb")] });
  const one = makeDocument({ role: "controller", addons: [addon("cert-manager")] });
  const gate = (standing: ChartStanding | undefined, proposal = one) =>
    diffDocuments(both, proposal, {
      ...options,
      ...(standing === undefined ? {} : { standings: new Map([["metallb", standing]]) }),
    });

  test("goes once its Chart object is proven gone, and is a change like any other", () => {
    expect(gate({ is: "gone" })).toMatchObject({
      result: "reconcilable",
      fields: [{ path: "addons[metallb]", class: "safe", old: { name: "metallb" } }],
      removed: [],
      vanished: [],
      restarts: ["k0scontroller"],
    });
  });

  test.each([
    ["it is there", { is: "there" }, "kubectl delete chart -n kube-system k0s-addon-chart-metallb"],
    ["its uninstall is not over", { is: "leaving" }, "apply again when its Chart object is gone"],
    ["nobody answers", { is: "unknown", why: "the connection was refused" }, "the connection was refused"],
  ] as const)("stays refused while %s, and the hint says it", (_, standing, hint) => {
    const diff = gate(standing);
    expect(diff).toMatchObject({ result: "refused", removed: [{ path: "addons[metallb]" }], vanished: ["metallb"] });
    expect(diff.removed[0]?.hint).toContain(hint);
  });

  test("by a patch that puts other charts in their place is refused naming each, until each is gone", () => {
    const patch = { spec: { extensions: { helm: { charts: [{ name: "own", chartname: "oci://r/own" }] } } } };
    const replaced = makeDocument({ role: "controller", addons: both.addons, k0s: { patch } });
    const refused = gate({ is: "gone" }, replaced);
    expect(refused.removed.map(({ path, name }) => `${path} ${name}`)).toEqual(["k0s.patch cert-manager"]);
    const gone = { is: "gone" } as const;
    const standings = new Map(["cert-manager", "metallb"].map((name) => [name, gone] as const));
    expect(diffDocuments(both, replaced, { ...options, standings }).result).toBe("reconcilable");
  });
});

describe("a stack that was handed over", () => {
  const stack = (name: string, content = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}") => ({
    name,
    files: [{ name: "a.yaml", content }],
  });
  const network = (handover: object | undefined) => ({
    ...makeDocument().network,
    cni: "custom" as const,
    ...(handover === undefined ? {} : { handover: { mode: "manual" as const, ...handover } }),
  });
  const handover = { stack: "cni", application: { name: "cni", namespace: "argocd" } };
  const before = makeDocument({ network: network(handover), manifests: [stack("cni"), stack("site")] });
  const dropped = makeDocument({ network: network(undefined), manifests: [stack("site")] });
  const diff = (from: Document, to: Document, handedOver?: string) =>
    diffDocuments(from, to, { ...options, ...(handedOver === undefined ? {} : { handedOver }) });

  test("may go from the document, with what names it there, and nothing restarts", () => {
    expect(diff(before, dropped).result).toBe("refused");
    const now = diff(before, dropped, "cni");
    expect(now).toMatchObject({ result: "reconcilable", removed: [], restarts: [] });
    expect(now.fields.map(({ path, class: kind }) => `${path} ${kind}`)).toEqual([
      "manifests[cni] safe",
      "network.handover.application.name host",
      "network.handover.application.namespace host",
      "network.handover.mode host",
      "network.handover.stack host",
    ]);
  });

  test.each([
    [
      "other content",
      before,
      makeDocument({ network: network(handover), manifests: [stack("cni", "{}"), stack("site")] }),
    ],
    [
      "a file more",
      before,
      makeDocument({
        network: network(handover),
        manifests: [{ name: "cni", files: [...stack("cni").files, { name: "b.yaml", content: "{}" }] }, stack("site")],
      }),
    ],
    [
      "a file less",
      before,
      makeDocument({ network: network(handover), manifests: [{ name: "cni", files: [] }, stack("site")] }),
    ],
    ["its return after it was dropped", dropped, before],
  ])("takes no edit: %s", (_, from, to) => {
    expect(diff(from, to, "cni")).toMatchObject({ result: "refused", reason: "handed-over" });
  });

  test("leaves the others as they are: another stack that goes is refused, another application too", () => {
    expect(
      diff(before, makeDocument({ network: network(handover), manifests: [stack("cni")] }), "cni").removed,
    ).toMatchObject([{ name: "site" }]);
    const other = { ...handover, application: { name: "other", namespace: "argocd" } };
    expect(
      diff(before, makeDocument({ network: network(other), manifests: before.manifests }), "cni").fields,
    ).toMatchObject([{ path: "network.handover.application.name", class: "immutable" }]);
  });
});

test("B170: a worker's document on the only controller: refused, naming the role", () => {
  const diff = diffDocuments(makeDocument({ role: "controller" }), makeDocument({ role: "worker" }), options);
  expect(diff.fields.map(({ path }) => path)).toContain("role");
  expect(diff.result).toBe("refused");
});

test("a moved object is not a removed one", () => {
  const ns = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}";
  const map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a}}";
  const stack = (one: string, two: string) =>
    makeDocument({
      manifests: [
        {
          name: "site",
          files: [
            { name: "1.yaml", content: one },
            { name: "2.yaml", content: two },
          ],
        },
      ],
    });
  const both = stack(`${ns}\n---\n${map}\n`, "");
  expect(diffDocuments(both, stack(ns, map), options).result).toBe("reconcilable");
  expect(diffDocuments(both, stack(ns, ""), options).removed.map(({ name }) => name)).toEqual([
    "site/1.yaml/ConfigMap/a/a",
  ]);
});

test("an object in a List that vanishes is named", () => {
  const list = (...names: string[]) =>
    makeDocument({
      manifests: [
        {
          name: "s",
          files: [
            {
              name: "l.yaml",
              content: JSON.stringify({
                apiVersion: "v1",
                kind: "List",
                items: names.map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
              }),
            },
          ],
        },
      ],
    });
  expect(diffDocuments(list("a", "b"), list("a"), options).removed.map(({ name }) => name)).toEqual([
    "s/l.yaml/Namespace/b",
  ]);
});

describe("a patch that reaches what Corium models", () => {
  const patched = (spec: object): Document => makeDocument({ role: "controller", k0s: { patch: { spec } } });
  const plain = makeDocument({ role: "controller" });

  test("is refused unless owned; then its effect is named", () => {
    const diff = diffDocuments(plain, patched({ storage: { type: "kine" } }), options);
    expect(diff).toMatchObject({
      result: "refused",
      reason: "patch-overrides",
      overrides: ["spec.storage"],
      restarts: [],
    });
    const owned = diffDocuments(plain, patched({ storage: { type: "kine" } }), { ...options, ownPatch: true });
    expect(owned).toMatchObject({ result: "reconcilable", restarts: ["k0scontroller"] });
    expect(owned.reason).toBeUndefined();
  });

  test("is no question when it was owned before", () => {
    const before = patched({ network: { podCIDR: "10.250.0.0/16" } });
    const next = patched({ network: { podCIDR: "10.250.0.0/16" }, konnectivity: { agentPort: 8232 } });
    expect(diffDocuments(before, next, options).result).toBe("reconcilable");
    expect(diffDocuments(before, plain, options).reason).toBe("patch-overrides");
  });

  test("elsewhere is nobody's business", () => {
    expect(diffDocuments(plain, patched({ api: { extraArgs: { v: "4" } } }), options).result).toBe("reconcilable");
  });
});

test("a reordered list beside a host change restarts nothing", () => {
  const baseline = makeDocument({ addons: [addon("a"), addon("b")] });
  const proposal = makeDocument({
    addons: [addon("b"), addon("a")],
    upgrades: { automatic: "apply", schedule: "daily" },
  });
  expect(diffDocuments(baseline, proposal, options)).toMatchObject({ result: "reconcilable", restarts: [] });
});

test("B048, B054: another virtual address on a living cluster is refused by its field, and so is another link for it", () => {
  const ha = (virtualIP: string, more: object = {}) =>
    makeDocument({ role: "controller", ha: { enabled: true, authPass: "x", virtualIP, unicastPeers: [], ...more } });
  const refused = (proposal: ReturnType<typeof ha>) => {
    const { result, fields } = diffDocuments(ha("10.0.0.5/24"), proposal, options);
    return [result, ...fields.map(({ path, class: kind }) => `${path} ${kind}`)];
  };
  expect(refused(ha("10.0.0.6/24"))).toEqual(["refused", "ha.virtualIP immutable"]);
  // A VLAN or a bridge put below it comes with another link.
  expect(refused(ha("10.0.0.5/24", { interface: "eth0.7" }))).toEqual(["refused", "ha.interface immutable"]);
});

test("secrets are shown as fingerprints, equal only for equal secrets, other under another key", () => {
  const ha = (authPass: string) =>
    makeDocument({ role: "controller", ha: { enabled: true, authPass, virtualIP: "192.0.2.9/24", unicastPeers: [] } });
  const diff = diffDocuments(ha("hunter22"), ha("swordfis"), options);
  expect(JSON.stringify(diff)).not.toMatch(/hunter22|swordfis/);
  const other = diffDocuments(ha("hunter22"), ha("swordfis"), { fingerprintKey: "another" });
  expect(other.fields[0]?.old).not.toEqual(diff.fields[0]?.old);
  const values = (password: string) => makeDocument({ addons: [addon("a", { values: { admin: { password } } })] });
  expect(JSON.stringify(diffDocuments(values("hunter22"), values("swordfis"), options))).not.toMatch(
    /hunter22|swordfis/,
  );
});

test("a document that parses is unchanged against itself, with every optional block there", () => {
  const text = `role: controller
backup: {enabled: true}
network: {cni: custom, handover: {mode: manual, stack: cni}}
manifests: [{name: cni, files: [{name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}]}]
api: {enabled: true}
install: {disk: /dev/vda}
`;
  const { document } = parseDocument(text, { nowMs: 0 });
  if (document === undefined) throw new Error("not valid");
  expect(diffDocuments(document, document, options)).toMatchObject({ result: "unchanged", fields: [], removed: [] });
});

test("a manifest with more than a hundred aliases was valid and broke the comparison", () => {
  const content = `{apiVersion: v1, kind: List, x: &x {a: b}, y: [${"*x ,".repeat(300)}], items: []}`;
  const text = `role: single\nmanifests: [{name: a, files: [{name: a.yaml, content: '${content}'}]}]\n`;
  const { document } = parseDocument(text, { nowMs: 0 });
  if (document === undefined) throw new Error("it is valid");
  expect(diffDocuments(document, document, { fingerprintKey: "k" }).result).toBe("unchanged");
});
