import { expect, test } from "bun:test";
import { parseDocument } from "../config/load.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { CLUSTER_KEY, readClusterDigest } from "./cluster-digest.ts";

const first = `role: controller+worker
node: {name: n1, labels: {rack: a}}
cluster: {name: shop, endpoint: 192.0.2.9, subjectAltNames: [api.example.com]}
addons:
  - {name: ingress, chart: "oci://r.example.com/ingress", values: {password: hunter2}}
manifests: [{name: site, files: [{name: a.yaml, content: "{apiVersion: v1, kind: A, metadata: {name: x, namespace: default}}"}, {name: b.yaml, content: "{apiVersion: v1, kind: B, metadata: {name: x, namespace: default}}"}]}]
`;
const second = `manifests: [{name: site, files: [{name: b.yaml, content: "{apiVersion: v1, kind: B, metadata: {name: x, namespace: default}}"}, {name: a.yaml, content: "{apiVersion: v1, kind: A, metadata: {name: x, namespace: default}}"}]}]
role: controller
node: {name: n2}
storage: {type: etcd}
cluster: {subjectAltNames: [api.example.com], endpoint: 192.0.2.9, name: shop}
upgrades: {automatic: download}
addons:
  - {chart: "oci://r.example.com/ingress", name: ingress, values: {password: hunter2}}
`;

async function digest(text: string, key: string | undefined): Promise<string | undefined> {
  const host = fakeHost({ files: key === undefined ? {} : { [CLUSTER_KEY]: key } });
  return readClusterDigest(host, parseDocument(text, { nowMs: 0 }).document);
}

test("equal on two controllers that say the same of the cluster, whatever else they are", async () => {
  const one = await digest(first, "key of the CA");
  expect(one).toMatch(/^[0-9a-f]{64}$/);
  expect(await digest(second, "key of the CA")).toBe(one ?? "");
});

test.each([
  ["hunter2", "hunter3"],
  ["kind: B", "kind: C"],
  ["ingress, chart", "egress, chart"],
])("another %s makes another digest", async (from, to) => {
  expect(await digest(first.replace(from, to), "key")).not.toBe((await digest(first, "key")) ?? "");
});

test("B089: names that only one controller's certificate has show in the digest", async () => {
  expect(await digest(first.replace("[api.example.com]", "[]"), "key")).not.toBe((await digest(first, "key")) ?? "");
});

test("a reader can't try passwords against it: it is keyed with what only controllers have", async () => {
  expect(await digest(first, "key of another CA")).not.toBe((await digest(first, "key of the CA")) ?? "");
  expect(await digest(first, undefined)).toBeUndefined();
});

test("a worker has none", async () => {
  const worker = parseDocument("role: controller\n", { nowMs: 0 }).document;
  if (worker === undefined) throw new Error("not valid");
  const host = fakeHost({ files: { [CLUSTER_KEY]: "key" } });
  expect(await readClusterDigest(host, { ...worker, role: "worker" })).toBeUndefined();
});

test("a handed-over stack is the same to all controllers, whether they have dropped it or not", async () => {
  const network = "network: {cni: custom, handover: {mode: manual, stack: cni}}\n";
  const stack = `manifests: [{name: cni, files: [{name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}]}]\n`;
  const read = (text: string, handedOver?: string) => {
    const { document } = parseDocument(`role: controller\n${text}`, { nowMs: 0 });
    if (document === undefined) throw new Error("not valid");
    return readClusterDigest(fakeHost({ files: { [CLUSTER_KEY]: "key" } }), document, handedOver);
  };
  const [kept, dropped] = [network + stack, "network: {cni: custom}\n"];
  expect(await read(kept, "cni")).toBe((await read(dropped, "cni")) ?? "");
  // One that has not handed over yet applies it when it leads.
  expect(await read(kept)).not.toBe((await read(kept, "cni")) ?? "");
});
