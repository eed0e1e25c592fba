// budget: 3600 s
/**
 * A node in service is changed behind its back, and says so; what nobody confirms it takes back by itself, whatever
 * happens to its program and to its power meanwhile. One machine; each test goes on with what the one before left.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigStatusAnswer } from "../../api/contract.ts";
import type { Operation } from "../../state/model.ts";
import { HELLO_ADDON, K0S_UNIT } from "../qemu/harness/documents.ts";
import { askGate } from "../qemu/harness/gate-cases.ts";
import { testImage } from "../qemu/harness/image.ts";
import { contentOfFiles, readDatabase, unitRun } from "../qemu/harness/inside.ts";
import { openOperator } from "../qemu/harness/node.ts";
import { openOneNode } from "../qemu/harness/one-node.ts";
import { readDiffCases, verdictOf, wantedOf } from "../support/diff-cases.ts";

const base = `role: single
cluster: { name: demo }
node: { name: node1 }
api: { enabled: true }
`;
const withAddon = `${base}${HELLO_ADDON}`;
const withTimer = `${base}upgrades: { automatic: download, schedule: weekly }\n`;
const SLOW_MS = 600_000;

const node = await openOneNode(await testImage(), { name: "keep" });
const { operator, file, switchOn, until } = node;
const other = await openOperator();
afterAll(async () => {
  await node.close();
  other.dispose();
});

const run = (script: string): Promise<string> => node.shell.must(script, 120_000);

const applyArgv = (name: string, document: string, ...more: readonly string[]): string[] => [
  "apply",
  "node1",
  "--file",
  file(name, document),
  "--yes",
  ...more,
];

async function config(): Promise<ConfigStatusAnswer> {
  const ran = await operator.cctl(["diff", "node1", "--output", "json"], 120_000);
  return JSON.parse(ran.stdout) as ConfigStatusAnswer;
}

const lastApply = async (): Promise<Operation | undefined> =>
  (await node.operations()).find(({ kind }) => kind === "apply");

const untilApply = (phase: Operation["phase"]): Promise<Operation> =>
  until(`the apply is ${phase}`, async () => {
    const last = await lastApply();
    return last?.phase === phase && last;
  });

/** What must be as before once a change was taken back. */
async function standing(): Promise<unknown> {
  const { documents, baseline } = await readDatabase(node.shell);
  return { content: await contentOfFiles(node.shell), documents, baseline };
}

describe("what is changed behind its back", () => {
  test("its document edited by hand: an event, pending with what it would take, and nothing is done; put back, it is in sync", async () => {
    await switchOn(base);
    expect(await config()).toMatchObject({ state: "in-sync" });
    const run0 = await unitRun(node.shell, K0S_UNIT);
    await run("echo 'upgrades: { automatic: download, schedule: weekly }' >>/etc/corium/config.yaml");
    const told = await until(
      "the event",
      async () => /.*config\.yaml.*/.exec(await operator.must(["events", "node1"], 60_000))?.[0],
    );
    expect(told).toContain("config.yaml");
    expect(await config()).toMatchObject({
      state: "pending",
      reasons: [{ code: "document-edited", path: "/etc/corium/config.yaml", class: "reboot-free" }],
    });
    expect(await run("systemctl list-unit-files corium-upgrade.timer --no-legend || true")).toBe("");
    expect(await unitRun(node.shell, K0S_UNIT)).toEqual(run0);
  }, 2_000_000);

  test("after a boot it is still pending, and nothing is done; a release that renders otherwise writes k0s.yaml anew, once", async () => {
    // As a release with another renderer would find the node, and a file that was changed by hand in the copy kept of it.
    await run(`cat >/run/.older.js <<'END'
import { Database } from "bun:sqlite";
const values = ['$."/etc/k0s/k0s.yaml"', "of another renderer"];
const query = "UPDATE baseline SET render_version = 0, rendered = json_set(rendered, ?, ?)";
new Database("/var/lib/corium/corium.db").run(query, values);
END
BUN_BE_BUN=1 /usr/bin/corium --config=/dev/null run --no-install --no-env-file /run/.older.js
sed -i 's/enabled: false/enabled: true/' /var/lib/corium/etc/k0s/k0s.yaml; sync`);
    await node.cut();
    await switchOn();
    expect(await config()).toMatchObject({ state: "pending", reasons: [{ code: "document-edited" }] });
    expect(await run("systemctl list-unit-files corium-upgrade.timer --no-legend || true")).toBe("");
    const renders = async (): Promise<readonly string[]> => {
      const listed = await operator.must(["operations", "node1", "--output", "json"], 60_000);
      const { operations } = JSON.parse(listed) as { readonly operations: readonly Operation[] };
      return operations.filter(({ kind }) => kind === "render").map(({ phase }) => phase);
    };
    expect(await renders()).toEqual(["succeeded"]);
    expect(await run("cat /etc/k0s/k0s.yaml")).not.toContain("enabled: true");
    expect(await run("cat /var/lib/corium/by-hand/*")).toContain("enabled: true");
    await run("systemctl restart corium-apid");
    await until("the API again", () => operator.status("node1"));
    expect(await renders()).toEqual(["succeeded"]);
    await run("sed -i '/^upgrades/d' /etc/corium/config.yaml");
    await until("in sync", async () => (await config()).state === "in-sync");
  }, 2_000_000);

  test("k0s.yaml edited by hand: drifted, with the diff; the next apply says that it is replaced, and keeps it", async () => {
    await run("sed -i 's/enabled: false/enabled: true/' /etc/k0s/k0s.yaml");
    const { state, reasons } = await config();
    expect([state, reasons.map(({ path }) => path)]).toEqual(["drifted", ["/etc/k0s/k0s.yaml"]]);
    expect(reasons[0]?.diff).toContain("+    enabled: true");
    const edited = await run("sha256sum </etc/k0s/k0s.yaml");
    const applied = await operator.must(applyArgv("addon.yaml", withAddon), SLOW_MS);
    expect(applied).toMatch(/k0s\.yaml.*by hand/);
    const copies = await run("find /var/lib/corium/undo -type f -exec sha256sum {} +");
    expect(copies).toContain(edited.split(" ")[0] ?? "none");
    expect(await run("cat /etc/k0s/k0s.yaml")).not.toContain("enabled: true");
    expect(await config()).toMatchObject({ state: "in-sync" });
  }, 2_000_000);

  test("an add-on that was uninstalled may leave the document, and only then", async () => {
    const early = await operator.cctl(applyArgv("dropped.yaml", base), SLOW_MS);
    expect([early.exitCode, early.stderr.includes("kubectl delete chart")]).toEqual([1, true]);
    await run("k0s kubectl delete chart -n kube-system k0s-addon-chart-hello");
    const dropped = await operator.must(applyArgv("dropped.yaml", base), SLOW_MS);
    expect(dropped).toContain("applied: restarted k0scontroller");
    expect(await run("cat /etc/k0s/k0s.yaml")).not.toContain("hello");
  }, 2_000_000);
});

const cases = readDiffCases();
if (cases === undefined) test.skip("the gate's cases through the API of a machine [needs ../shared]", () => {});
else
  test("the gate's cases through the API of a machine: each as offline, and nothing is changed by asking", async () => {
    const before = await standing();
    // Their charts were never there, which a cluster that answers would prove, so that they might leave.
    await run("systemctl stop k0scontroller");
    const answers = await askGate(node.shell, cases);
    await run("systemctl start k0scontroller");
    expect(answers.map((answer, at) => [cases[at]?.name, verdictOf(answer)])).toEqual(
      cases.map((one) => [one.name, wantedOf(one)]),
    );
    expect(await standing()).toEqual(before);
  }, 2_000_000);

describe("a change that is to be confirmed", () => {
  test("is taken back when nobody does, in time, k0s restarted with the old files", async () => {
    const before = await standing();
    const made = await operator.must(applyArgv("addon.yaml", withAddon, "--confirm-within", "20s"), SLOW_MS);
    expect(made).toMatch(/in 20s it is taken back, unless it is confirmed: cctl confirm node1 \w+/);
    const { failureReason } = await untilApply("rolled-back");
    expect(failureReason).toContain("confirm");
    expect(await standing()).toEqual(before);
    expect(await unitRun(node.shell, K0S_UNIT)).toMatchObject({ activeState: "active" });
    expect(await config()).toMatchObject({ state: "in-sync" });
  }, 2_000_000);

  test("its program is killed meanwhile: it waits on, is kept when confirmed in time, and taken back when not", async () => {
    await operator.must(applyArgv("timer.yaml", withTimer, "--confirm-within", "1h"), SLOW_MS);
    await run("systemctl kill -s KILL corium-apid");
    await until("the API again", () => operator.status("node1"));
    expect((await lastApply())?.phase).toBe("awaiting-confirmation");
    expect(await config()).toMatchObject({ state: "pending", reasons: [{ code: "awaiting-confirmation" }] });
    expect(await operator.must(["confirm", "node1"], SLOW_MS)).toContain("kept: nothing restarted");
    expect((await lastApply())?.phase).toBe("succeeded");
    expect(await run("cat /etc/corium/config.yaml")).toBe(withTimer.trimEnd());

    const before = await standing();
    await operator.must(applyArgv("base.yaml", base, "--confirm-within", "30s"), SLOW_MS);
    await run("systemctl kill -s KILL corium-apid");
    await untilApply("rolled-back");
    expect(await standing()).toEqual(before);
    expect(await run("systemctl is-active corium-upgrade.timer")).toBe("active");
  }, 2_000_000);

  test("power goes meanwhile: the next boot undoes it before k0s starts", async () => {
    const before = await standing();
    const k0s = await run("sha256sum </etc/k0s/k0s.yaml");
    await operator.must(applyArgv("addon.yaml", `${withTimer}${HELLO_ADDON}`, "--confirm-within", "1h"), SLOW_MS);
    expect(await run("sha256sum </etc/k0s/k0s.yaml")).not.toBe(k0s);
    await node.cut();
    await switchOn();
    expect(await untilApply("rolled-back")).toMatchObject({ kind: "apply" });
    expect(await standing()).toEqual(before);
    expect(await run("k0s kubectl get charts -n kube-system -o name")).toBe("");
  }, 2_000_000);

  test("a new operator CA that locks the caller out undoes itself; confirmed by one of its own, it stays", async () => {
    const ca = readFileSync(join(other.directory, "store", "operator-ca.pem"), "utf8");
    const indented = ca.trimEnd().replaceAll("\n", "\n    ");
    const handed = withTimer.replace(
      "api: { enabled: true }",
      `api:\n  enabled: true\n  operatorCA: |\n    ${indented}`,
    );
    const alone = await operator.cctl(applyArgv("new-ca.yaml", handed), SLOW_MS);
    expect([alone.exitCode, alone.stderr.includes("could lock you out; nothing was changed")]).toEqual([1, true]);
    await operator.must(applyArgv("new-ca.yaml", handed, "--confirm-within", "20s"), SLOW_MS);
    await untilApply("rolled-back");

    await operator.must(applyArgv("new-ca.yaml", handed, "--confirm-within", "1h"), SLOW_MS);
    const own = await operator.cctl(["confirm", "node1"], SLOW_MS);
    expect([own.exitCode, own.stderr.includes("a certificate of the new operator CA")]).toEqual([1, true]);
    // As the first operator pinned it.
    const known = readFileSync(join(operator.directory, "store", "config.yaml"), "utf8");
    const pinned = /SHA256:[A-Za-z0-9+/]{43}/.exec(known)?.[0] ?? "";
    await other.must(["trust", `127.0.0.1:${node.port}`, "--fingerprint", pinned, "--name", "node1"], SLOW_MS);
    expect(await other.must(["confirm", "node1"], SLOW_MS)).toContain("kept: nothing restarted");
    expect((await operator.cctl(["health", "node1"], SLOW_MS)).exitCode).toBe(4);
    expect(await other.must(["health", "node1"], SLOW_MS)).toContain("ok");
  }, 2_000_000);

  test("the API off undoes itself; confirmed, it stays off, and k0s goes on", async () => {
    const off = withTimer.replace("enabled: true", "enabled: false");
    writeFileSync(join(other.directory, "off.yaml"), off);
    const argv = ["apply", "node1", "--file", "off.yaml", "--yes", "--confirm-within"];
    await other.must([...argv, "20s"], SLOW_MS);
    await until("taken back", async () => {
      const listed = await other.cctl(["operations", "node1", "--output", "json"], 60_000);
      if (listed.exitCode !== 0) return false;
      const { operations } = JSON.parse(listed.stdout) as { readonly operations: readonly Operation[] };
      return operations.find(({ kind }) => kind === "apply")?.phase === "rolled-back";
    });
    expect(await other.must(["health", "node1"], SLOW_MS)).toContain("ok");
    await other.must([...argv, "1h"], SLOW_MS);
    expect(await other.must(["confirm", "node1"], SLOW_MS)).toContain("is off now: only its console is left");
    await run("until [ $(systemctl show -P ActiveState corium-apid) != active ]; do sleep 1; done");
    expect(await run("systemctl show -P ExecMainStatus corium-apid")).toBe("78");
    expect(await unitRun(node.shell, K0S_UNIT)).toMatchObject({ activeState: "active" });
  }, 2_000_000);
});
