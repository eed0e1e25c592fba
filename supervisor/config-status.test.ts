import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ConfigReason } from "../api/contract.ts";
import { expectedNode } from "../apply/expected.ts";
import { nodeFingerprintKey } from "../apply/fingerprint-key.ts";
import { inputHash, secretFingerprints } from "../apply/input-hash.ts";
import { RENDER_VERSION } from "../apply/render-version.ts";
import type { Document } from "../config/document.ts";
import { parseDocument } from "../config/load.ts";
import { nodePaths } from "../kit/paths.ts";
import { Secret } from "../kit/secret.ts";
import type { Baseline } from "../state/model.ts";
import { memoryState, type State } from "../state/open.ts";
import { type FakeHost, fakeHost } from "../test/support/fake-host.ts";
import { plain, services, world } from "../test/support/first-boot.ts";
import { recordBaseline } from "../test/support/in-service.ts";
import { bootstrap } from "./bootstrap.ts";
import { type ConfigFacts, configReader, type ConfigWorld } from "./config-status.ts";
import { sha256Of } from "../kit/sha256.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const paths = nodePaths();
const K0S_YAML = "/etc/k0s/k0s.yaml";
const K0S = "v1.36.3+k0s.2";
const PASS = "s3cret-1";

const ADDON = `addons:
  - name: metallb
    chart: oci://r.example.com/metallb
    namespace: metallb-system
    values: { speaker: { password: addon-word } }
`;
const HA = `role: controller
cluster: { name: shop, endpoint: 192.0.2.9 }
node: { name: n1 }
ha:
  enabled: true
  virtualIP: 192.0.2.9/24
  interface: eno1
  authPassFrom: { file: /etc/corium/vrrp }
`;
const PLAIN = "role: single\nnode: { name: n1 }\n";
const MANIFEST = `manifests:
  - name: site
    files:
      - name: login.yaml
        content: |
          apiVersion: v1
          kind: Secret
          metadata: { name: login }
          stringData: { user: in-the-manifest }
`;

interface Node {
  readonly host: FakeHost;
  readonly state: State;
  readonly look: (facts?: Partial<ConfigFacts>) => Promise<readonly ConfigReason[]>;
  readonly found: () => Promise<string>;
}

function documentOf(text: string): Document {
  const { document, findings } = parseDocument(text, { nowMs: 0 });
  if (document === undefined) throw new Error(JSON.stringify(findings));
  return document;
}

/** In service with this document, and as it was made. */
function node(text: string, more: Partial<Baseline> & Pick<ConfigWorld, "renderVersion"> = {}): Node {
  const { renderVersion, ...recorded } = more;
  const state = memoryState();
  const host = fakeHost({ files: { "/etc/corium/vrrp": `${PASS}\n`, [paths.config]: text } });
  const document = documentOf(text);
  const facts = { hostname: "n1", machineId: "m", addresses: recorded.addresses ?? {} };
  const { files, units } = expectedNode({ document, node: facts, owned: [] });
  const rendered: Record<string, string> = {};
  for (const { path, content, mode } of files.values()) {
    const filled = content.replace(/<secret:ha\.authPassFrom>/, PASS);
    host.put(path, filled, { mode });
    rendered[path] = sha256Of(filled);
  }
  for (const unit of units) {
    const active = { activeState: "active", subState: "running", loadState: "loaded", isEnabled: true };
    host.unitTable.set(unit, { ...active, restarts: 0, result: "success", mainPid: 9, journal: [] });
  }
  const field = "ha.authPassFrom";
  const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
  const known = text.includes(field.slice(3)) ? new Map([[field, new Secret(field, PASS)]]) : new Map<string, Secret>();
  recordBaseline(state, text, {
    rendered,
    k0sVersion: K0S,
    renderVersion: RENDER_VERSION,
    secretFingerprints: secretFingerprints(known, fingerprintKey),
    ...recorded,
  });
  const read = configReader({
    host,
    paths,
    state,
    ...(renderVersion === undefined ? {} : { renderVersion }),
  });
  const all: ConfigFacts = { hostname: "n1", k0sVersion: K0S, arrays: [], mounts: [], links: [], addresses: [] };
  return {
    host,
    state,
    look: async (changed = {}) => (await read({ ...all, ...changed })).reasons,
    found: async () => (await read(all)).state,
  };
}

const codes = (reasons: readonly ConfigReason[]): readonly string[] =>
  reasons.map(({ code, class: effect }) => (effect === undefined ? code : `${code} ${effect}`));

test("a recorded document that this release does not take is told, and not in-sync", async () => {
  const { state, look, found, host } = node(PLAIN);
  const text = `${PLAIN}flavour: mint\n`;
  recordBaseline(state, text, { k0sVersion: K0S, renderVersion: RENDER_VERSION, rendered: {}, secretFingerprints: {} });
  host.put(paths.config, text);
  const [reason, ...more] = await look();
  expect([await found(), more]).toEqual(["pending", []]);
  expect(reason).toMatchObject({ code: "renderer-changed", class: "unsupported" });
  expect(reason?.message).toContain("this release does not take the document that the node runs (");
  expect(reason?.message).toContain("flavour");
});

test("a node without a baseline has nothing to be compared with", async () => {
  const state = memoryState();
  const read = configReader({ host: fakeHost(), paths, state });
  expect(await read({ hostname: "n1", arrays: [], mounts: [], links: [] })).toEqual({
    state: "unconfigured",
    reasons: [],
  });
});

describe("pending", () => {
  const edited = async (before: string, after: string): Promise<readonly ConfigReason[]> => {
    const one = node(before);
    expect(await one.look()).toEqual([]);
    one.host.put(paths.config, after);
    return one.look();
  };

  test.each([
    ["an add-on restarts k0s", PLAIN, PLAIN + ADDON, "restarts-k0s", "addons[metallb]"],
    ["a timer restarts nothing", PLAIN, `${PLAIN}upgrades: { automatic: download }\n`, "reboot-free", "upgrades"],
    ["what the node is, is of its installation", PLAIN, PLAIN.replace("n1", "n2"), "install-time-only", "node.name"],
    ["an add-on that is gone is taken by no apply", PLAIN + ADDON, PLAIN, "unsupported", "addons[metallb]"],
  ])("an edited document says what it would take: %s", async (_what, before, after, effect, named) => {
    const reasons = await edited(before, after);
    expect(codes(reasons)).toEqual([`document-edited ${effect}`]);
    expect(reasons[0]?.message).toContain(named);
    expect(reasons[0]?.path).toBe(paths.config);
  });

  test("one that is not valid is said to be, with its first problem", async () => {
    const [reason] = await edited(PLAIN, `${PLAIN}rolle: worker\n`);
    expect(codes(reason === undefined ? [] : [reason])).toEqual(["document-edited unsupported"]);
    expect(reason?.message).toContain("is not valid");
    expect(reason?.message).toContain("rolle");
  });

  test("comments, order and spelling alone are nobody's wish: in sync", async () => {
    const one = node(PLAIN);
    one.host.put(paths.config, "# tidied up\nnode:\n  name: 'n1'\nrole: single\n");
    expect([await one.found(), await one.look()]).toEqual(["in-sync", []]);
  });

  test("a deleted document is told apart from one that never was", async () => {
    const one = node(PLAIN);
    one.host.drop(paths.config);
    expect(codes(await one.look())).toEqual(["document-edited reboot-free"]);
    const stored = one.state.documents.add({
      text: PLAIN,
      atMs: 1,
      requester: { kind: "document" },
      origin: "corium.config=https://example.com/n1.yaml",
    });
    const baseline = one.state.baseline.get();
    if (baseline !== undefined) one.state.baseline.set({ ...baseline, document: stored });
    expect(await one.look()).toEqual([]);
  });

  test("another content of a secret's file counts, its time and its absence do not", async () => {
    const one = node(HA);
    one.host.put("/etc/corium/vrrp", `${PASS}\n`, { mtimeMs: 5 });
    expect(await one.look()).toEqual([]);
    one.host.drop("/etc/corium/vrrp");
    expect(await one.look()).toEqual([]);
    one.host.put("/etc/corium/vrrp", "another!\n");
    const [reason] = await one.look();
    expect(codes(reason === undefined ? [] : [reason])).toEqual(["secret-changed unsupported"]);
    expect(reason?.message).not.toContain("another!");
  });

  test("a secret that only the first boot needs never counts", async () => {
    const one = node(`${PLAIN.replace("single", "worker")}join: { tokenFrom: { file: /etc/corium/token } }\n`);
    one.host.put("/etc/corium/token", "spent\n");
    expect(codes(await one.look())).not.toContain("secret-changed");
  });

  test("another k0s, and a lost address", async () => {
    expect(codes(await node(PLAIN).look({ k0sVersion: "v1.37.0+k0s.0" }))).toEqual(["k0s-version restarts-k0s"]);
    const moved = node(PLAIN, { addresses: { nodeIp: "192.0.2.2" } });
    expect(codes(await moved.look({ addresses: ["192.0.2.77"] }))).toEqual(["address-changed unsupported"]);
    expect(await moved.look({ addresses: undefined })).toEqual([]);
  });

  test("a hand-over that GitOps is ready for waits until it is made; then its stack is missed by nobody", async () => {
    const one = node(PLAIN + MANIFEST);
    const condition = { status: "True", reason: "Synced", message: "cctl handover n1 n2 n3", atMs: 1 } as const;
    one.state.handover.set({ ...condition, status: "False", reason: "Manual" });
    expect(await one.look()).toEqual([]);
    one.state.handover.set(condition);
    expect(codes(await one.look())).toEqual(["handover restarts-k0s"]);
    one.state.handover.finish({ stack: "site", keptAt: "/var/lib/corium/kept", atMs: 2 });
    one.host.drop("/var/lib/k0s/manifests/site/login.yaml");
    expect(await one.look()).toEqual([]);
  });

  test("a renderer that changed names what it writes otherwise; a drifted file is not read as its work alone", async () => {
    const newer = { renderVersion: RENDER_VERSION + 1 };
    const same = node(HA, newer);
    expect(codes(await same.look())).toEqual(["renderer-changed reboot-free"]);
    const one = node(PLAIN + MANIFEST, newer);
    const recorded = one.state.baseline.get();
    if (recorded === undefined) throw new Error("no baseline");
    const made = (path: string) => {
      one.host.put(path, "of the old renderer\n");
      const rendered = { ...recorded.rendered, [path]: sha256Of("of the old renderer\n") };
      one.state.baseline.set({ ...recorded, rendered, atMs: recorded.atMs + path.length });
    };
    made("/etc/hosts");
    const [reason] = await one.look();
    expect(codes(reason === undefined ? [] : [reason])).toEqual(["renderer-changed needs-reboot"]);
    expect(reason?.message).toContain("/etc/hosts");
    made(K0S_YAML);
    expect(codes(await one.look())).toEqual(["renderer-changed restarts-k0s", "file-changed"]);
    // Of /etc/hosts, which is of the old renderer on the disk alone now.
    expect((await one.look())[1]?.path).toBe("/etc/hosts");
  });

  test("the node is pending exactly when the hash of what rendering reads is another one", async () => {
    const one = node(HA, { addresses: { nodeIp: "192.0.2.2" } });
    const fingerprintKey = nodeFingerprintKey(one.state.meta, one.host.random);
    const inputs = {
      document: documentOf(HA),
      secrets: one.state.baseline.get()?.secretFingerprints ?? {},
      fingerprintKey,
      addresses: { nodeIp: "192.0.2.2" },
      hostname: "n1",
      k0sVersion: K0S,
    };
    const recorded = inputHash(inputs);
    const here = { addresses: ["192.0.2.2"] };
    const reformatted = `# mine\n${HA}`;
    one.host.put(paths.config, reformatted);
    expect(inputHash({ ...inputs, document: documentOf(reformatted) })).toBe(recorded);
    expect(await one.look(here)).toEqual([]);
    const changed = HA + ADDON;
    one.host.put(paths.config, changed);
    expect(inputHash({ ...inputs, document: documentOf(changed) })).not.toBe(recorded);
    expect(codes(await one.look(here))).toEqual(["document-edited restarts-k0s"]);
    one.host.put(paths.config, HA);
    one.host.put("/etc/corium/vrrp", "other");
    const other = secretFingerprints(new Map([["ha.authPassFrom", new Secret("x", "other")]]), fingerprintKey);
    expect(inputHash({ ...inputs, secrets: other })).not.toBe(recorded);
    expect(codes(await one.look(here))).toEqual(["secret-changed unsupported"]);
  });
});

describe("drifted", () => {
  test("each file that was changed by hand is named with its diff, and nothing is written", async () => {
    const one = node(PLAIN);
    const before = one.host.text(K0S_YAML) ?? "";
    one.host.put(K0S_YAML, before.replace("spec:", "spec:\n  telemetryByHand: true"));
    one.host.drop("/etc/hosts");
    const writes = one.host.calls.filter((call) => /write|remove|rename/.test(call)).length;
    const reasons = await one.look();
    expect(codes(reasons)).toEqual(["file-missing", "file-changed"]);
    expect(reasons[1]?.diff).toContain("+  telemetryByHand: true");
    expect(reasons[1]?.diff?.split("\n").filter((line) => /^[-+][^-+]/.test(line))).toHaveLength(1);
    expect(await one.found()).toBe("drifted");
    expect(one.host.calls.filter((call) => /write|remove|rename/.test(call))).toHaveLength(writes);
  });

  test("no secret is in a diff: the password that was given, the one typed over it, keys beside it", async () => {
    const one = node(HA + ADDON);
    const before = one.host.text(K0S_YAML) ?? "";
    expect(before).toContain(PASS);
    one.host.put(K0S_YAML, `${before}# { authPass: typed-in, x: 1 }\nprivateKey: by-hand\n`);
    const [kept] = await one.look();
    expect(kept?.diff).toContain("+");
    for (const text of [PASS, "typed-in", "by-hand", "addon-word"]) expect(kept?.diff).not.toContain(text);
    one.host.put(K0S_YAML, before.replace(PASS, "typed-in"));
    const [typed] = await one.look();
    expect(typed?.diff).toMatch(/^-.*<secret:ha\.authPassFrom>/m);
    expect(typed?.diff).toMatch(/^\+.*authPass: .*hmac-sha256/m);
    for (const text of [PASS, "typed-in"]) expect(typed?.diff).not.toContain(text);
  });

  test("a manifest with a Secret: its values are masked, and a broken one is not shown at all", async () => {
    const one = node(PLAIN + MANIFEST);
    const path = "/var/lib/k0s/manifests/site/login.yaml";
    const before = one.host.text(path) ?? "";
    expect(before).toContain("in-the-manifest");
    one.host.put(path, `${before}immutable: true\n`);
    const [masked] = await one.look();
    expect(masked?.diff).toContain("+immutable: true");
    expect(masked?.diff).not.toContain("in-the-manifest");
    one.host.put(path, `${before}broken: [\n`);
    const [broken] = await one.look();
    expect(broken).toMatchObject({ code: "file-changed", path });
    expect(broken).not.toHaveProperty("diff");
  });

  test("a file that is nothing but a secret has no diff", async () => {
    const text = `${PLAIN.replace("single", "worker")}join: { tokenFrom: { file: /etc/corium/token } }\n`;
    const one = node(text);
    one.host.put("/etc/k0s/join-token", "somebody's\n");
    const [token] = await one.look();
    expect(token).toMatchObject({ code: "file-changed", path: "/etc/k0s/join-token" });
    expect(token).not.toHaveProperty("diff");
  });

  test("units that were stopped, disabled, masked, or run something else", async () => {
    const unit = async (change: Partial<NonNullable<ReturnType<FakeHost["unitTable"]["get"]>>>) => {
      const one = node(PLAIN);
      Object.assign(one.host.unitTable.get("k0scontroller.service") ?? {}, change);
      return (await one.look()).map(({ message }) => message);
    };
    expect(await unit({ activeState: "activating" })).toEqual([]);
    expect(await unit({ activeState: "inactive" })).toEqual(["k0scontroller.service is inactive, it was active"]);
    expect(await unit({ isEnabled: false })).toEqual(["k0scontroller.service is disabled, it was enabled"]);
    expect(await unit({ loadState: "masked" })).toEqual(["k0scontroller.service is masked"]);
    const one = node(PLAIN);
    const exec = (flags: string) => `[Service]\nExecStart=/usr/bin/k0s controller ${flags}\n`;
    one.host.put("/etc/systemd/system/k0scontroller.service", exec("--config=/etc/k0s/k0s.yaml --single=true"));
    expect(await one.look()).toEqual([]);
    one.host.put("/etc/systemd/system/k0scontroller.service", exec("--config=/root/other.yaml --single=true"));
    expect(codes(await one.look())).toEqual(["unit-changed"]);
  });

  test("arrays, mounts, links and the hostname", async () => {
    const one = node(PLAIN);
    const array = { name: "data", state: "degraded", active: 1, expected: 2 };
    const reasons = await one.look({
      hostname: "n2",
      arrays: [array, { ...array, name: "fine", state: "healthy", active: 2 }],
      mounts: [
        { path: "/srv", mounted: false },
        { path: "/var/lib/k0s", mounted: true },
      ],
      links: [{ name: "wg0", up: false }],
    });
    expect(reasons.map(({ code, path }) => [code, path])).toEqual([
      ["array-changed", "data"],
      ["mount-changed", "/srv"],
      ["link-changed", "wg0"],
      ["hostname", undefined],
    ]);
  });

  test("while an apply writes, what is half written is no drift", async () => {
    const one = node(PLAIN);
    one.host.put(K0S_YAML, "half of the new one\n");
    const begun = one.state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!begun.ok) throw new Error("busy");
    expect(await one.look()).toEqual([]);
    one.state.operations.end(begun.value.id, { phase: "failed", failureReason: "x" }, 2);
    expect(codes(await one.look())).toEqual(["file-changed"]);
  });

  test("asked every two seconds, nothing is rendered or compared again until something changes", async () => {
    const one = node(PLAIN);
    let key = 0;
    const meta = {
      ...one.state.meta,
      get: (name: Parameters<State["meta"]["get"]>[0]) => ((key += 1), one.state.meta.get(name)),
    };
    const read = configReader({ host: one.host, paths, state: { ...one.state, meta } });
    const facts: ConfigFacts = { hostname: "n1", arrays: [], mounts: [], links: [] };
    one.host.put(K0S_YAML, "x: 1\n");
    const [first, second] = [await read(facts), await read(facts)];
    // The key is fetched where documents are read and rendered.
    expect([key, second]).toEqual([1, first]);
    const diffs = [first, second].map(({ reasons }) => reasons[0]?.diff);
    expect(diffs[0]).toBeDefined();
  });
});

describe("after a first boot", () => {
  /** A node as bootstrap makes it: array, filesystem and mount by UUIDs that it chose itself. */
  async function booted(more: { readonly renderVersion?: number } = {}) {
    const of = world(plain, { "/etc/corium/config.yaml": plain });
    expect(await bootstrap(services(of))).toBe(0);
    const { host, state } = of;
    const read = configReader({ host, paths, state, ...more });
    const hostname = host.text("/proc/sys/kernel/hostname")?.trim() ?? "";
    const k0sVersion = state.baseline.get()?.k0sVersion;
    return { of, look: () => read({ hostname, k0sVersion, arrays: [], mounts: [], links: [], addresses: undefined }) };
  }

  test("the node is in sync, and of each file there is a diff once it is changed: it is rendered as it was written", async () => {
    const { of, look } = await booted();
    expect(await look()).toEqual({ state: "in-sync", reasons: [] });
    const written = Object.keys(of.state.baseline.get()?.rendered ?? {});
    for (const part of ["mdadm.conf.d", ".mount", "k0s.yaml", ".timer", "hostname"]) {
      expect(written.some((path) => path.includes(part))).toBe(true);
    }
    for (const path of written) of.host.put(path, `${of.host.text(path) ?? ""}# by hand\n`);
    const { reasons } = await look();
    expect(reasons.map(({ path }) => path)).toEqual(written);
    for (const { path, diff } of reasons) {
      const changed = diff?.split("\n").filter((line) => /^[-+][^-+]/.test(line));
      expect([path, changed]).toEqual([path, ["+# by hand"]]);
    }
  });

  test("another version of the renderer that renders the same wishes nothing of any file", async () => {
    const { look } = await booted({ renderVersion: RENDER_VERSION + 1 });
    const { reasons } = await look();
    expect(codes(reasons)).toEqual(["renderer-changed reboot-free"]);
    expect(reasons[0]?.message).toContain("writes the same");
  });
});
