// budget: 2400 s
/**
 * A node in service takes the changes of a later document, refuses those that would make it another node, and undoes
 * what k0s does not survive. One machine; each test goes on with what the one before left.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { HELLO_ADDON, K0S_UNIT, MIRRORED_NODE } from "./harness/documents.ts";
import { testImage } from "./harness/image.ts";
import { contentOfFiles, keptFiles, readDatabase, unitRun } from "./harness/inside.ts";
import { openOneNode } from "./harness/one-node.ts";

const base = `${MIRRORED_NODE}wireguard:
  - name: wg0
    address: 10.9.0.1/24
    listenPort: 51820
    generateKey: true
`;
const withAddon = `${base}${HELLO_ADDON}    values: { greeting: good morning }
`;

const disks = ["data-a", "data-b"].map((serial) => ({ serial, sizeMiB: 512 }));
const node = await openOneNode(await testImage(), { name: "day-two", disks });
const { operator, file, operations } = node;
afterAll(() => node.close());

const applyArgv = (document: string): string[] => ["apply", "node1", "--file", document, "--yes"];

/** All that must not differ when nothing was written and nothing restarted. */
async function everything(): Promise<unknown> {
  const { shell } = node;
  return { files: await keptFiles(shell), database: await readDatabase(shell), k0s: await unitRun(shell, K0S_UNIT) };
}

describe("a node in service", () => {
  test("comes into service", async () => {
    const answer = await node.switchOn(base);
    expect(answer.storage.arrays).toMatchObject([{ name: "data", active: 2, expected: 2 }]);
    expect(answer.overlay).toMatchObject([{ name: "wg0", up: true }]);
    expect((await unitRun(node.shell, K0S_UNIT)).activeState).toBe("active");
  }, 2_000_000);

  test("an add-on: the plan names the restart, a dry run does nothing, the apply makes a release of it", async () => {
    const { shell } = node;
    const document = file("addon.yaml", withAddon);
    const before = await everything();
    const dry = await operator.must(["apply", "node1", "--file", document, "--dry-run"]);
    expect(dry).toContain("+ addons[hello] (safe)");
    expect(dry).toContain("restarts k0scontroller");
    expect(dry).toMatch(/\+ +- chartname: "site\/hello"/);
    expect(await everything()).toEqual(before);

    const pid = (await unitRun(shell, K0S_UNIT)).mainPid;
    const applied = await operator.must(applyArgv(document), 600_000);
    expect(applied).toContain("restarts k0scontroller");
    expect(applied).toContain("applied: restarted k0scontroller");
    expect(await shell.must("cat /etc/k0s/k0s.yaml")).toContain('chartname: "site/hello"');
    expect(await shell.must("cat /etc/corium/config.yaml")).toBe(withAddon.trimEnd());
    const k0s = await unitRun(shell, K0S_UNIT);
    expect(k0s).toMatchObject({ activeState: "active", restarts: 0 });
    expect(k0s.mainPid).not.toBe(pid);
    const chart = await shell.must("k0s kubectl get chart -n kube-system k0s-addon-chart-hello -o json");
    expect(JSON.parse(chart)).toMatchObject({
      spec: { chartName: "site/hello", releaseName: "hello", version: "1.2.3", namespace: "hello" },
      status: { revision: 1, error: "" },
    });
    const [last] = (await operations()).filter(({ kind }) => kind === "apply");
    expect(last?.phase).toBe("succeeded");
    expect((await operator.cctl(["diff", "node1"])).stdout).toBe("in-sync\n");
  }, 900_000);

  test("the same again is unchanged and writes nothing", async () => {
    const before = await everything();
    expect(await operator.must(applyArgv(file("same.yaml", withAddon)))).toContain("unchanged");
    // Another text of the same meaning too.
    expect(await operator.must(applyArgv(file("comment.yaml", `# a comment\n${withAddon}`)))).toContain("unchanged");
    expect(await everything()).toEqual(before);
  }, 400_000);

  test("what makes it another node, or drops what runs, is refused whole and by name", async () => {
    const before = await everything();
    const renamed = await operator.cctl(applyArgv(file("renamed.yaml", withAddon.replace("node1", "node2"))));
    expect([renamed.exitCode, renamed.stdout]).toEqual([1, ""]);
    expect(renamed.stderr).toContain('node.name: "node1" → "node2" (immutable)');
    const dropped = await operator.cctl(applyArgv(file("dropped.yaml", base)));
    expect([dropped.exitCode, dropped.stdout]).toEqual([1, ""]);
    expect(dropped.stderr).toContain("addons[hello]");
    expect(dropped.stderr).toContain("kubectl delete chart -n kube-system k0s-addon-chart-hello");
    // A change that alone would be taken does not go through beside one that is refused.
    const mixed = `${base.replace("node1", "node2")}upgrades: { automatic: download, schedule: daily }\n`;
    const both = await operator.cctl(applyArgv(file("mixed.yaml", mixed)));
    expect(both.exitCode).toBe(1);
    expect(both.stderr).toContain("node.name");
    expect(both.stderr).toContain("addons[hello]");
    expect(await everything()).toEqual(before);
    expect(await node.shell.must("hostname")).toBe("node1");
  }, 400_000);

  test("a readonly certificate may look and may not apply", async () => {
    const before = await everything();
    await operator.must(["pki", "issue", "--role", "readonly", "--name", "viewer", "--to", "viewer"]);
    const timer = file("viewer.yaml", `${withAddon}upgrades: { automatic: download, schedule: weekly }\n`);
    for (const dry of [[], ["--dry-run"]]) {
      const refused = await operator.cctl([...applyArgv(timer), ...dry, "--dir", "viewer"]);
      expect(refused.exitCode).toBe(4);
      expect(refused.stderr).toContain("403");
      expect(refused.stderr).toContain("readonly");
    }
    expect(await operator.must(["status", "node1", "--dir", "viewer"])).toContain("in-service");
    expect(await everything()).toEqual(before);
  }, 400_000);

  test("k0s does not come back: the change undoes itself and says why with the journal's tail", async () => {
    const { shell } = node;
    const before = { content: await contentOfFiles(shell), database: await readDatabase(shell) };
    const pid = (await unitRun(shell, K0S_UNIT)).mainPid;
    // Valid for k0s, and it can't start: the port is that of this node's own API.
    const broken = `${withAddon}k0s: { patch: { spec: { api: { k0sApiPort: 7443 } } } }\n`;
    const failed = await operator.cctl(applyArgv(file("broken.yaml", broken)), 600_000);
    expect(failed.exitCode).toBe(1);
    expect(failed.stdout).toContain("restarts k0scontroller");
    expect(failed.stderr).toContain("the change was taken back");
    expect(failed.stderr).toMatch(/EADDRINUSE|address already in use|port 7443 in use/i);

    const [last] = (await operations()).filter(({ kind }) => kind === "apply");
    expect(last?.phase).toBe("rolled-back");
    expect(last?.failureReason).toMatch(/EADDRINUSE|address already in use|port 7443 in use/i);
    expect(await contentOfFiles(shell)).toBe(before.content);
    const { documents, baseline } = await readDatabase(shell);
    expect({ documents, baseline }).toEqual({
      documents: before.database.documents,
      baseline: before.database.baseline,
    });
    const k0s = await unitRun(shell, K0S_UNIT);
    expect(k0s.activeState).toBe("active");
    expect(k0s.mainPid).not.toBe(pid);
    expect(await shell.must("k0s kubectl get --raw /readyz")).toContain("ok");
    expect(await shell.must("k0s kubectl get chart -n kube-system k0s-addon-chart-hello -o name")).toContain("hello");
    expect((await operator.cctl(["diff", "node1"])).stdout).toBe("in-sync\n");
  }, 900_000);

  test("upgrades are a timer and restart nothing; an apply that failed before is not in the way", async () => {
    const { shell } = node;
    const k0s = await unitRun(shell, K0S_UNIT);
    const timer = (schedule: string): string =>
      file("timer.yaml", `${withAddon}upgrades: { automatic: download, schedule: "${schedule}" }\n`);
    for (const schedule of ["Mon *-*-* 03:00:00", "Tue *-*-* 04:30:00"]) {
      const applied = await operator.must(applyArgv(timer(schedule)), 300_000);
      expect(applied).toContain("restarts nothing");
      expect(applied).toContain("applied: nothing restarted");
      const shown = await shell.must("systemctl show corium-upgrade.timer -p ActiveState -p TimersCalendar");
      expect(shown).toContain("ActiveState=active");
      expect(shown).toContain(`OnCalendar=${schedule}`);
    }
    expect(await unitRun(shell, K0S_UNIT)).toEqual(k0s);
    expect((await operator.cctl(["diff", "node1"])).stdout).toBe("in-sync\n");
  }, 700_000);
});
