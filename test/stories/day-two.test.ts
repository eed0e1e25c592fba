/** The first claim and the first changes of a node, as its operators live through them. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { parse } from "yaml";
import { type FakeHost, fakeHost } from "../support/fake-host.ts";
import { type StoryNode, startStoryNode } from "./story-node.ts";
import { type Transcript, transcript } from "./transcript.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const base = `role: single
cluster:
  name: shop
node:
  name: node1
`;
const withAddon = `${base}addons:
  - name: metallb
    chart: metallb/metallb
    namespace: metallb-system
    repository: { name: metallb, url: https://metallb.github.io/metallb }
`;

let node: StoryNode;
let operator: FakeHost;
let story: Transcript;

beforeEach(async () => {
  node = await startStoryNode();
  operator = fakeHost({ nowMs: Date.now() });
  story = transcript(operator, node);
});
afterEach(async () => {
  invariants();
  await node.close();
});

/** Whatever the story: what the node says it runs is what is in its files, and nothing secret was shown. */
function invariants(): void {
  const baseline = node.state.baseline.get();
  if (baseline !== undefined) expect(node.machine.text("/etc/corium/config.yaml")).toBe(baseline.document.text);
  expect(node.state.operations.running()).toBeUndefined();
  expect(story.raw()).not.toContain("PRIVATE KEY");
  for (const { requester, route } of node.state.audit.last(1000)) {
    expect([route, requester.kind]).toEqual([route, "operator"]);
  }
}

const write = (name: string, text: string): void => operator.put(name, text);

async function claim(): Promise<void> {
  await story.type("pki init");
  await story.type("enroll ADDRESS --code CODE --fingerprint FINGERPRINT --name node1");
}

/** Content and time of every file that an apply could touch. */
const fingerprintOfFiles = (): string =>
  JSON.stringify(
    node.machine
      .paths()
      .filter((path) => !path.startsWith("/run/"))
      .map((path) => [path, node.machine.text(path), node.machine.node(path)?.mtimeMs]),
  );

describe("stories", () => {
  test("claiming: wrong code, another node's fingerprint, the right ones, and never twice", async () => {
    await story.type("pki init");
    await story.type("enroll ADDRESS --code 0000-0000 --fingerprint FINGERPRINT");
    await story.type(`enroll ADDRESS --code CODE --fingerprint SHA256:${"A".repeat(43)}`);
    await story.type("status ADDRESS");
    expect(node.state.claim.get()).toBeUndefined();
    await story.type("enroll ADDRESS", { answers: ["yes", node.code()] });
    expect(node.state.claim.get()?.by).toBe("enroll");
    await story.type("health ADDRESS");
    await story.type("enroll ADDRESS --code 0000-0000 --fingerprint FINGERPRINT");
    story.note("somebody else has a CA of his own, and the fingerprint");
    operator.put("/home/eve/.corium/config.yaml", `nodes:\n  ${node.address}:\n    fingerprint: ${node.fingerprint}\n`);
    await story.type("pki init", { home: "/home/eve" });
    const rogue = await story.type("status ADDRESS", { home: "/home/eve" });
    expect(rogue.status).toBe(4);
    story.check("claiming");
  });

  test("applying: an add-on, the same again, a rename, a drop, a timer", async () => {
    await claim();
    node.bootstrap(base);
    story.note("the node has bootstrapped");
    await story.type("status node1");
    write("node.yaml", withAddon);
    await story.type("diff node1 --file node.yaml");
    await story.type("apply node1 --file node.yaml", { answers: ["no"] });
    expect(node.machine.text("/etc/k0s/k0s.yaml")).not.toContain("metallb");
    await story.type("apply node1 --file node.yaml", { answers: ["y"] });
    const config = parse(node.machine.text("/etc/k0s/k0s.yaml") ?? "") as {
      spec: { extensions: { helm: { charts: { name: string }[] } } };
    };
    expect(config.spec.extensions.helm.charts.map(({ name }) => name)).toEqual(["metallb"]);

    story.note("the same again: nothing is written, nothing restarts");
    const before = fingerprintOfFiles();
    const pid = node.machine.unitTable.get("k0scontroller.service")?.mainPid;
    await story.type("apply node1 --file node.yaml --yes");
    await story.type("diff node1 --file node.yaml");

    story.note("what the node is can't change, and what it runs is not dropped by leaving it out");
    write("renamed.yaml", withAddon.replace("node1", "node2"));
    const renamed = await story.type("apply node1 --file renamed.yaml --yes");
    expect([renamed.status, renamed.err.includes("node.name")]).toEqual([1, true]);
    write("dropped.yaml", base);
    const dropped = await story.type("apply node1 --file dropped.yaml --yes");
    expect([dropped.status, dropped.err.includes("metallb")]).toEqual([1, true]);
    expect(fingerprintOfFiles()).toBe(before);

    story.note("upgrades are a timer: nothing restarts");
    write("timer.yaml", `${withAddon}upgrades:\n  automatic: download\n  schedule: Mon 03:00\n`);
    await story.type("apply node1 --file timer.yaml --yes");
    expect(node.machine.unitTable.get("k0scontroller.service")?.mainPid).toBe(pid ?? -1);
    expect(fingerprintOfFiles()).not.toBe(before);
    await story.type("operations node1");
    await story.type("audit node1");
    story.check("applying");
  });

  test("roles: a colleague who may only look", async () => {
    await claim();
    node.bootstrap(base);
    await story.type("pki issue --to /tmp/bob --name bob --role readonly");
    write("node.yaml", withAddon);
    const before = fingerprintOfFiles();
    await story.type("status node1 --dir /tmp/bob");
    const refused = [
      await story.type("apply node1 --file node.yaml --yes --dir /tmp/bob"),
      await story.type("restart node1 k0scontroller --yes --dir /tmp/bob"),
      await story.type("reboot node1 --yes --dir /tmp/bob"),
      await story.type("audit node1 --dir /tmp/bob"),
    ];
    expect(refused.map(({ status }) => status)).toEqual([4, 4, 4, 4]);
    expect(fingerprintOfFiles()).toBe(before);
    story.check("roles");
  });

  test("a change that k0s does not survive is undone, and the next one works", async () => {
    await claim();
    node.bootstrap(base);
    node.k0s.poison = "metallb";
    write("node.yaml", withAddon);
    const before = node.machine.text("/etc/k0s/k0s.yaml");
    const ran = await story.type("apply node1 --file node.yaml --yes");
    expect(ran.status).toBe(1);
    expect(node.machine.text("/etc/k0s/k0s.yaml")).toBe(before ?? "");
    expect(node.state.baseline.get()?.document.text).toBe(base);
    delete node.k0s.poison;
    story.note("k0s takes it now");
    expect((await story.type("apply node1 --file node.yaml --yes")).status).toBe(0);
    story.check("undone");
  });

  test("a file that somebody changed by hand is drift: named, and not corrected", async () => {
    await claim();
    node.bootstrap(base);
    expect((await story.type("status node1 --check")).status).toBe(0);
    expect((await story.type("diff node1")).status).toBe(0);
    const config = node.machine.text("/etc/k0s/k0s.yaml") ?? "";
    const byHand = config.replace(/^spec:/m, "spec:\n  featureGates: [{name: Mine, enabled: true}]");
    node.machine.put("/etc/k0s/k0s.yaml", byHand);
    const drifted = await story.type("diff node1");
    expect([drifted.status, drifted.out.includes("/etc/k0s/k0s.yaml")]).toEqual([5, true]);
    expect(drifted.out).toContain("+  featureGates: [{name: Mine, enabled: true}]");
    expect((await story.type("status node1 --check")).status).toBe(5);
    expect(node.machine.text("/etc/k0s/k0s.yaml")).toBe(byHand);

    story.note("who may only look is told so, without what stands in k0s.yaml");
    await story.type("pki issue --to /tmp/bob --name bob --role readonly");
    const looked = await story.type("diff node1 --dir /tmp/bob");
    expect([looked.status, looked.out.includes("featureGates")]).toEqual([5, false]);
    expect(looked.out).toContain("/etc/k0s/k0s.yaml was changed");

    story.note("the next apply replaces it, says so, and keeps it");
    write("node.yaml", withAddon);
    const applied = await story.type("apply node1 --file node.yaml --yes");
    const copy = /kept on the node as (\S+)/.exec(applied.out)?.[1] ?? "";
    expect([applied.status, node.machine.text(copy)]).toEqual([0, byHand]);
    expect(node.machine.text("/etc/k0s/k0s.yaml")).not.toContain("featureGates");
    expect((await story.type("diff node1")).status).toBe(0);
    story.check("drift");
  });

  test("a document that somebody edits on the node is pending, with what it would take; nothing is done with it", async () => {
    await claim();
    node.bootstrap(base);
    const config = "/etc/corium/config.yaml";
    story.note("comments alone are nobody's wish");
    node.machine.put(config, `# the shop's node\n${base}`);
    expect((await story.type("diff node1")).status).toBe(0);
    story.note("an add-on");
    node.machine.put(config, withAddon);
    const before = fingerprintOfFiles();
    const edited = await story.type("diff node1");
    expect([edited.status, edited.out.includes("document-edited (restarts-k0s)")]).toEqual([5, true]);
    expect((await story.type("status node1 --check")).status).toBe(5);
    story.note("another name: that is of the installation");
    node.machine.put(config, base.replace("node1", "node2"));
    expect((await story.type("diff node1")).out).toContain("install-time-only");
    story.note("a slip");
    node.machine.put(config, `${base}rolle: worker\n`);
    expect((await story.type("diff node1")).out).toContain("is not valid");
    story.note("gone");
    node.machine.drop(config);
    await story.type("diff node1");
    node.machine.put(config, withAddon);
    expect(fingerprintOfFiles()).toBe(before);
    story.note("applied, it is what the node runs");
    write("node.yaml", withAddon);
    expect((await story.type("apply node1 --file node.yaml --yes")).status).toBe(0);
    expect((await story.type("diff node1")).status).toBe(0);
    story.check("edited");
  });

  test("resetting: the plan, a slip, the node's name, and nobody's node", async () => {
    await claim();
    node.bootstrap(base);
    node.machine.put("/proc/self/mounts", "/dev/vda8 /var ext4 rw 0 0\n");
    await story.type("reset node1 --dry-run --destroy-cluster");
    const alone = await story.type("reset node1 --yes --confirm node1");
    expect([alone.status, alone.err.includes("only controller")]).toEqual([1, true]);
    await story.type("reset node1 --destroy-cluster", { answers: ["shop"] });
    expect(node.state.baseline.get()).toBeDefined();
    expect((await story.type("reset node1 --destroy-cluster", { answers: ["node1"] })).status).toBe(0);
    await node.settled();
    expect(node.state.baseline.get()).toBeUndefined();
    expect(node.state.claim.get()).toBeUndefined();
    expect(node.state.meta.get("held")).toBeDefined();
    expect(node.machine.calls.filter((call) => call.includes("reboot"))).toEqual(["exec systemctl --no-block reboot"]);
    story.check("resetting");
  });

  test("two operators: the second one's plan is of yesterday", async () => {
    await claim();
    node.bootstrap(base);
    write("node.yaml", withAddon);
    const plan = await story.type("apply node1 --file node.yaml --dry-run --output json");
    const { etag } = JSON.parse(plan.out) as { readonly etag: string };
    expect((await story.type("apply node1 --file node.yaml --yes")).status).toBe(0);
    write("later.yaml", `${withAddon}upgrades:\n  automatic: download\n`);
    const late = await story.type(`apply node1 --file later.yaml --yes --if-match ${etag}`);
    expect([late.status, late.err.includes("412")]).toEqual([1, true]);
  });
});
