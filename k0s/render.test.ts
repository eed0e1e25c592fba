import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { parse } from "yaml";
import { parseDocument } from "../config/load.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { addressesToRecord } from "./addresses.ts";
import { renderK0s } from "./render.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const config = (files: ReturnType<typeof renderK0s>["files"]): string =>
  files.find((file) => file.path === "/etc/k0s/k0s.yaml")?.content ?? "";

const addon = { name: "ingress", chart: "oci://registry.example.com/ingress", namespace: "default" };

test("a node without a role has nothing to render yet", () => {
  const { role: _, ...undecided } = makeDocument();
  expect(renderK0s({ document: undecided, addresses: {} })).toEqual({ files: [], installArgv: null, findings: [] });
});

test("a worker has a token file but no k0s.yaml", () => {
  const document = makeDocument({ role: "worker", join: { tokenFrom: { file: "/run/token" } } });
  const { files } = renderK0s({ document, addresses: {} });
  expect(files).toEqual([{ path: "/etc/k0s/join-token", mode: 0o600, content: "<secret:join.tokenFrom>\n" }]);
});

test("chart versions are quoted: 1.10 would lose its zero", () => {
  const document = makeDocument({ addons: [{ ...addon, version: "1.10" }] });
  expect(config(renderK0s({ document, addresses: {} }).files)).toContain('version: "1.10"');
});

test('B114: values: enabled "false" stays a string and false stays a boolean', () => {
  const document = makeDocument({ addons: [{ ...addon, values: { a: "false", b: false, c: "no" } }] });
  const rendered = parse(config(renderK0s({ document, addresses: {} }).files)) as {
    spec: { extensions: { helm: { charts: { values: string }[] } } };
  };
  const values = rendered.spec.extensions.helm.charts[0]?.values ?? "";
  expect(parse(values, { version: "1.1" })).toEqual({ a: "false", b: false, c: "no" });
});

describe("k0s is held back by the addresses that the node was bootstrapped with", () => {
  const hold = (document: Parameters<typeof renderK0s>[0]["document"], addresses: object) =>
    renderK0s({ document, addresses }).files.find(({ path }) => path.startsWith("/etc/systemd/system/"));

  test("each once, in a drop-in of its unit", () => {
    const file = hold(makeDocument({ role: "controller" }), { apiAddress: "192.0.2.2", nodeIp: "192.0.2.2" });
    expect(file?.path).toBe("/etc/systemd/system/k0scontroller.service.d/50-corium-address.conf");
    expect(file?.content).toContain(
      "\nRequires=corium-address@192.0.2.2.service\nAfter=corium-address@192.0.2.2.service\n",
    );
    expect(hold(makeDocument({ role: "worker" }), { nodeIp: "fd00::2" })?.content).toContain(
      "corium-address@fd00::2.service",
    );
  });

  test("where k0s may choose nothing holds it; that of an overlay is waited for with the overlay", () => {
    expect(hold(makeDocument(), {})).toBeUndefined();
    const overlay = { name: "wg0", address: ["10.9.0.7/24"], nodeAddress: true, generateKey: true, peers: [] };
    const document = makeDocument({ role: "controller", wireguard: [overlay] });
    expect(hold(document, { apiAddress: "10.9.0.7", peerAddress: "10.9.0.7", nodeIp: "10.9.0.7" })).toBeUndefined();
    expect(hold(document, { nodeIp: "10.9.0.7", unicastSourceIp: "192.0.2.2" })?.content).toContain(
      "Requires=corium-address@192.0.2.2.service\n",
    );
  });
});

describe("addresses", () => {
  const ha = { enabled: true, virtualIP: "192.0.2.100/24", authPass: "s3cr3t", unicastPeers: ["192.0.2.12"] };
  const wireguard = [
    { name: "wg0", address: ["fd00:9::7/64", "10.9.0.7/24"], nodeAddress: true, generateKey: true, peers: [] },
  ];

  test("the virtual address is never an address of the node", () => {
    const document = makeDocument({
      role: "controller+worker",
      cluster: { name: "c", endpoint: "192.0.2.100", subjectAltNames: [] },
      ha,
    });
    const { files, installArgv } = renderK0s({ document, addresses: addressesToRecord(document, "192.0.2.11") });
    expect(config(files)).toContain('address: "192.0.2.11"');
    expect(config(files)).toContain('peerAddress: "192.0.2.11"');
    expect(installArgv).toContain("--node-ip=192.0.2.11");
  });

  test("with ha the overlay's address wins, VRRP stays on its link", () => {
    const document = makeDocument({
      role: "controller",
      cluster: { name: "c", endpoint: "vip.example.net", subjectAltNames: [] },
      ha,
      wireguard,
    });
    expect(addressesToRecord(document, "192.0.2.11")).toEqual({
      apiAddress: "10.9.0.7",
      peerAddress: "10.9.0.7",
      nodeIp: "10.9.0.7",
      unicastSourceIp: "192.0.2.11",
    });
  });

  test("a worker records no address of a control plane", () => {
    const document = makeDocument({ role: "worker", wireguard });
    expect(addressesToRecord(document, undefined)).toEqual({ nodeIp: "10.9.0.7" });
  });
});

describe("names in the API server's certificate", () => {
  const ha = { enabled: true, virtualIP: "192.0.2.100/24", authPass: "s3cr3t", unicastPeers: [] };
  const apiOf = (endpoint: string, own: string, node: string) => {
    const document = makeDocument({
      role: "controller",
      cluster: { name: "c", endpoint, subjectAltNames: ["k8s.example.net", endpoint] },
      node: { name: node, labels: {}, taints: [] },
      ha,
    });
    const text = config(renderK0s({ document, addresses: addressesToRecord(document, own) }).files);
    return (parse(text) as { spec: { api: { address: string; externalAddress: string; sans: string[] } } }).spec.api;
  };

  test("B090: the virtual address is what clients are sent to, and the certificate names it", () => {
    expect(apiOf("192.0.2.100", "192.0.2.11", "a")).toEqual({
      address: "192.0.2.11",
      externalAddress: "192.0.2.100",
      sans: ["192.0.2.100", "k8s.example.net"],
    });
    const { findings } = parseDocument(
      "role: controller\nha: {enabled: true, virtualIP: 192.0.2.100/24, authPass: x}\n",
      {
        nowMs: 0,
      },
    );
    expect(findings.map(({ path, code }) => `${code} ${path}`)).toEqual(["missing cluster.endpoint"]);
  });

  test("B089: every controller of a cluster gets the same names, not only the first", () => {
    const [first, second] = [apiOf("k.example.net", "192.0.2.11", "a"), apiOf("k.example.net", "192.0.2.12", "b")];
    expect(first.sans).toEqual(["k.example.net", "k8s.example.net"]);
    expect({ ...second, address: first.address }).toEqual(first);
  });
});

test("the password never stands in what is rendered", () => {
  const ha = { enabled: true, virtualIP: "192.0.2.100/24", authPass: "hunter22", unicastPeers: [] };
  const rendered = renderK0s({ document: makeDocument({ role: "controller", ha }), addresses: {} });
  expect(JSON.stringify(rendered)).not.toContain("hunter22");
  expect(config(rendered.files)).toContain('authPass: "<secret:ha.authPass>"');
});

test("a misspelt key that k0s would drop silently is a warning with the nearest key", () => {
  const document = makeDocument({ k0s: { patch: { spec: { api: { extrnalAddress: "a.example.net" } } } } });
  expect(renderK0s({ document, addresses: {} }).findings).toEqual([
    {
      severity: "warning",
      code: "k0s-unknown-key",
      path: "k0s.patch.spec.api.extrnalAddress",
      message: 'unknown key "extrnalAddress": k0s drops it without a word',
      hint: "did you mean externalAddress?",
    },
  ]);
});

test("node-local load balancing on 7443 is ours already", () => {
  const patch = { spec: { network: { nodeLocalLoadBalancing: { enabled: true } } } };
  const paths = renderK0s({ document: makeDocument({ k0s: { patch } }), addresses: {} }).findings.map(
    (one) => one.code,
  );
  expect(paths).toEqual(["port-taken"]);
});

test("a patch with __proto__ as a key changes no prototype", () => {
  const patch = JSON.parse('{"spec": {"__proto__": {"polluted": true}}}') as Record<string, unknown>;
  renderK0s({ document: makeDocument({ k0s: { patch } }), addresses: {} });
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("what Corium models by itself is clean under k0s's schema, and the same twice", () => {
  const roles = fc.constantFrom("single", "controller", "controller+worker" as const);
  const documents = fc.record({
    role: roles,
    cni: fc.constantFrom("kuberouter", "calico", "custom" as const),
    endpoint: fc.option(fc.constantFrom("api.example.net", "192.0.2.9", "2001:db8::9"), { nil: undefined }),
    hasOverlay: fc.boolean(),
    hasHa: fc.boolean(),
    values: fc.dictionary(fc.string(), fc.jsonValue()),
  });
  fc.assert(
    fc.property(documents, ({ role, cni, endpoint, hasOverlay, hasHa, values }) => {
      const document = makeDocument({
        role: role as "single",
        cluster: { name: "c", subjectAltNames: ["k8s.example.net"], ...(endpoint === undefined ? {} : { endpoint }) },
        network: { podCIDR: "10.244.0.0/16", serviceCIDR: "10.96.0.0/12", cni: cni as "custom" },
        addons: [{ ...addon, values }],
        ha: hasHa
          ? { enabled: true, virtualIP: "192.0.2.9/24", authPass: "x", unicastPeers: ["192.0.2.3"] }
          : makeDocument().ha,
        wireguard: hasOverlay
          ? [{ name: "wg0", address: ["10.9.0.1/24"], nodeAddress: true, generateKey: true, peers: [] }]
          : [],
      });
      const addresses = addressesToRecord(document, "192.0.2.7");
      const rendered = renderK0s({ document, addresses });
      expect(rendered.findings).toEqual([]);
      expect(renderK0s({ document: structuredClone(document), addresses })).toEqual(rendered);
    }),
  );
});

describe("several controllers", () => {
  const joining = makeDocument({ role: "controller+worker", join: { tokenFrom: { file: "/t" } } });
  const codes = (document: typeof joining): readonly string[] =>
    renderK0s({ document, addresses: {} }).findings.map(({ code, path }) => `${code} ${path}`);

  test("with nothing in front of them are a warning: workers reach one of them only", () => {
    expect(codes(joining)).toEqual(["no-balancer cluster.endpoint"]);
  });

  test("with a virtual address, an endpoint or node-local load balancing are none; nor is one alone, or a worker", () => {
    const ha = { enabled: true, virtualIP: "192.0.2.9/24", authPass: "x", unicastPeers: [] };
    const cluster = { name: "c", endpoint: "k8s.example.net", subjectAltNames: [] };
    const proxy = { enabled: true, envoyProxy: { apiServerBindPort: 7445 } };
    expect(codes({ ...joining, ha, cluster })).toEqual([]);
    expect(codes({ ...joining, cluster })).toEqual([]);
    expect(codes({ ...joining, k0s: { patch: { spec: { network: { nodeLocalLoadBalancing: proxy } } } } })).toEqual([]);
    expect(codes(makeDocument({ role: "controller" }))).toEqual([]);
    expect(codes({ ...joining, role: "worker" })).toEqual([]);
  });
});
