/** How strict the decoder of a ClusterConfig is; see test/contract/program.ts for a real k0s. */
import { afterAll, describe, expect, test } from "bun:test";
import { parse } from "yaml";
import { openProgram, type Ran } from "./program.ts";

const k0s = await openProgram();
afterAll(() => k0s.dispose());

const head = "apiVersion: k0s.k0sproject.io/v1beta1\nkind: ClusterConfig\nmetadata: {name: k0s}\n";
const validate = (spec: string, more: readonly string[] = []): Promise<Ran> =>
  k0s.run(["config", "validate", "-c", "-", ...more], { stdin: `${head}spec: ${spec}\n` });

describe("config create", () => {
  test("prints the defaults, which are valid", async () => {
    const ran = await k0s.run(["config", "create"]);
    expect(ran.exitCode).toBe(0);
    const config = parse(ran.stdout) as { readonly spec: Record<string, Record<string, unknown>> };
    expect(config.spec).toMatchObject({
      api: { port: 6443, k0sApiPort: 9443 },
      network: { provider: "kuberouter", podCIDR: "10.244.0.0/16", serviceCIDR: "10.96.0.0/12" },
      storage: { type: "etcd" },
      telemetry: { enabled: false },
    });
    const again = await k0s.run(["config", "validate", "-c", "-"], { stdin: ran.stdout });
    expect(again).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });
});

describe("config validate accepts, without a word", () => {
  test.each([
    ["nothing at all", "{}"],
    ["a misspelt key below spec.api: it is dropped", "{api: {extrnalAddress: x}}"],
    ["a misspelt key below spec.network", "{network: {kubeProxy: {moode: nft}}}"],
    ["a misspelt key below spec.storage", "{storage: {type: etcd, ectd: {}}}"],
    ["keys in another case", "{network: {PODCIDR: 10.1.0.0/16}}"],
    ["an unknown key called interval: swallowed on purpose", "{telemetry: {enabled: false, interval: 2m}}"],
    ["yes as a boolean: YAML 1.1", "{telemetry: {enabled: yes}}"],
    [
      "a chart with its values as a string",
      '{extensions: {helm: {charts: [{name: a, chartname: r/a, namespace: ns, values: "a: 1"}]}}}',
    ],
    ["kine with sqlite", "{storage: {type: kine}}"],
  ])("%s", async (_name, spec) => {
    expect(await validate(spec)).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });
  test("another kind: apiVersion and kind are not looked at", async () => {
    const ran = await k0s.run(["config", "validate", "-c", "-"], { stdin: "kind: Cluster\nspec: {}\n" });
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
  });
});

describe("config validate refuses with exit 1 and Error: on stderr", () => {
  const vrrp = (instance: string): string =>
    `{network: {controlPlaneLoadBalancing: {enabled: true, type: Keepalived, keepalived: {vrrpInstances: [${instance}]}}}}`;
  test.each([
    ["an unknown key of spec", "{networks: {}}", "networks"],
    ["an unknown key of extensions", "{extensions: {helms: {}}}", "helms"],
    [
      "an unknown key of a chart",
      "{extensions: {helm: {charts: [{name: a, chartname: r/a, namespace: ns, chart: x}]}}}",
      "chart",
    ],
    [
      "a number where a string belongs",
      vrrp('{virtualIPs: ["10.0.0.9/24"], authPass: 12345678, interface: eth0}'),
      "authPass",
    ],
    [
      "an unquoted chart version",
      "{extensions: {helm: {charts: [{name: a, chartname: r/a, namespace: ns, version: 1.20}]}}}",
      "version",
    ],
    ["a provider that does not exist", "{network: {provider: cilium}}", "cilium"],
    ["nft as the proxy's mode", "{network: {kubeProxy: {mode: nft}}}", "nft"],
    ["a pod range that is none", "{network: {podCIDR: 10.244.0.0}}", "10.244.0.0"],
    ["ranges of two families", '{network: {podCIDR: 10.244.0.0/16, serviceCIDR: "fd00::/108"}}', ""],
    ["the any address", "{api: {address: 0.0.0.0}}", "0.0.0.0"],
    ["a port beyond 65535", "{api: {port: 70000}}", "70000"],
    [
      "a virtual address without its mask",
      vrrp("{virtualIPs: [10.0.0.9], authPass: secret, interface: eth0}"),
      "10.0.0.9",
    ],
    [
      "a password of nine bytes",
      vrrp('{virtualIPs: ["10.0.0.9/24"], authPass: "123456789", interface: eth0}'),
      "authPass",
    ],
    ["no password", vrrp('{virtualIPs: ["10.0.0.9/24"], interface: eth0}'), "authPass"],
    [
      "peers without a source address",
      vrrp('{virtualIPs: ["10.0.0.9/24"], authPass: x, interface: eth0, unicastPeers: [10.0.0.2]}'),
      "unicast",
    ],
    ["a chart without a namespace", "{extensions: {helm: {charts: [{name: a, chartname: r/a}]}}}", "namespace"],
    ["a worker profile with capitals", "{workerProfiles: [{name: Big, values: {}}]}", "Big"],
    ["a profile that sets clusterDNS", "{workerProfiles: [{name: a, values: {clusterDNS: [10.0.0.1]}}]}", "cluster"],
  ])("%s", async (_name, spec, named) => {
    const ran = await validate(spec);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toStartWith("Error: ");
    expect(ran.stderr).toContain(named);
  });
  test("a key given twice", async () => {
    const ran = await k0s.run(["config", "validate", "-c", "-"], { stdin: `${head}spec: {}\nspec: {}\n` });
    expect(ran.exitCode).toBe(1);
  });
  test("a file that is not there", async () => {
    const ran = await k0s.run(["config", "validate", "-c", "/tmp/none/k0s.yaml"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("no such file or directory");
  });
  test("IPv6 alone without its gate, and not with it", async () => {
    const spec = '{api: {address: "fd00::1"}, network: {podCIDR: "fd01::/108", serviceCIDR: "fd02::/108"}}';
    expect((await validate(spec)).exitCode).toBe(1);
    expect((await validate(spec, ["--feature-gates", "IPv6SingleStack=true"])).exitCode).toBe(0);
  });
});
