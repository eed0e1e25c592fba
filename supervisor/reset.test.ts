/** A reset on a machine in memory; test/crash/reset.test.ts cuts one at every call. */
import { describe, expect, test } from "bun:test";
import { appError } from "../kit/app-error.ts";
import { nodePaths } from "../kit/paths.ts";
import { err, ok } from "../kit/result.ts";
import type { ResetIntent } from "../provision/reset/model.ts";
import { memoryErasable } from "../state/erase.ts";
import { machine } from "../test/machines/machines.ts";
import type { FakeHost, FakeProgram } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { recordBaseline } from "../test/support/in-service.ts";
import { carryOutReset } from "./reset.ts";
import { isResetting, readResetIntent, writeResetIntent } from "./reset-files.ts";

const paths = nodePaths();
const UNIT = "/etc/systemd/system/k0scontroller.service";
const MEMBERS = { node1: "https://192.0.2.1:2380", node2: "https://192.0.2.2:2380", node3: "https://192.0.2.3:2380" };

const nodeList = (isCordoned: boolean): string =>
  JSON.stringify({
    items: [{ kind: "Node", metadata: { name: "node1" }, spec: isCordoned ? { unschedulable: true } : {} }],
  });

interface Node {
  readonly role?: "single" | "controller" | "controller+worker";
  readonly mounts?: readonly string[];
  /** By somebody, before. */
  readonly isCordoned?: true;
  readonly k0s?: (argv: string) => ReturnType<FakeProgram> | undefined;
  readonly umount?: FakeProgram;
}

async function resetting(node: Node = {}, more: Partial<ResetIntent> = {}) {
  const { role = "single" } = node;
  const mounted = new Set(node.mounts ?? []);
  let isCordoned = node.isCordoned === true;
  const publish = (fake: FakeHost): void =>
    fake.put("/proc/self/mounts", [...mounted].map((point) => `/dev/x ${point} ext4 rw 0 0\n`).join(""));
  const host = fakeHost({
    files: { "/proc/sys/kernel/hostname": "node1\n" },
    programs: {
      k0s: (request) => {
        const argv = request.argv.slice(1).join(" ");
        const own = node.k0s?.(argv);
        if (own !== undefined) return own;
        if (argv.startsWith("kubectl get nodes")) return nodeList(isCordoned);
        if (argv.startsWith("kubectl patch node")) isCordoned = argv.includes('"unschedulable":true');
        return argv === "etcd member-list" ? JSON.stringify({ members: MEMBERS }) : "";
      },
      umount:
        node.umount ??
        (({ argv }, fake) => {
          mounted.delete(argv.at(-1) ?? "");
          publish(fake);
          return "";
        }),
      systemctl: () => "",
      networkctl: () => "",
      sync: () => "",
    },
    http: async () => err(appError("tls", "who are you")),
    units: {
      "k0scontroller.service": { activeState: "active", isEnabled: true },
      "corium-pods.service": { activeState: "active" },
      "corium-apid.service": { activeState: "active" },
      "corium-bootstrap.service": {},
    },
  });
  publish(host);
  host.put(UNIT, "[Service]\n");
  const records = memoryErasable();
  const { state } = records;
  const text = `role: ${role}\nnode: { name: node1 }\ncluster: { name: shop }\n`;
  recordBaseline(state, text, { hostname: "node1" });
  const begun = state.operations.begin({ kind: "reset", requester: { kind: "local" }, version: "1", atMs: 1 });
  if (!begun.ok) throw new Error("busy");
  const intent: ResetIntent = {
    version: 1,
    isWipingDisks: false,
    mayDestroyCluster: role === "single",
    requestedAtMs: 1,
    requestedBy: "operator alice",
    operation: begun.value.id,
    restarts: 0,
    ...more,
  };
  await writeResetIntent(host, paths, intent);
  const said: string[] = [];
  const run = () =>
    carryOutReset({
      host,
      paths,
      version: "1",
      readInventory: async () => ok(machine("blank-pair")),
      openErasable: () => ({ ...records, close: () => undefined }),
      say: (line) => void said.push(line),
    });
  const programs = (): readonly string[] =>
    host.calls.filter((call) => call.startsWith("exec ")).map((call) => call.slice("exec ".length));
  return { host, state, run, said, programs, operation: begun.value.id, isCordoned: () => isCordoned };
}

const isRebooted = (programs: readonly string[]): boolean => programs.at(-1) === "systemctl --no-block reboot";

describe("a reset", () => {
  test("of a node alone: k0s stops, is taken off, the node is forgotten, and restarts held", async () => {
    const { run, programs, state, host, said } = await resetting();
    expect(await run()).toBe(0);
    expect(programs()).toContain("/usr/bin/k0s reset");
    expect(programs().some((argv) => argv.includes("etcd leave"))).toBe(false);
    expect(isRebooted(programs())).toBe(true);
    expect([state.meta.get("held") === undefined, state.baseline.get()]).toEqual([false, undefined]);
    expect(state.events.last().map(({ message }) => message)).toEqual([
      "this node was reset by operator alice; its data disks were kept",
    ]);
    expect(await isResetting(host, paths)).toBe(false);
    expect(said.at(-1)).toContain("waits for a claim together with a document");
    expect(await run()).toBe(0);
  });

  test("of one of three controllers: drained, its Node deleted, out of etcd, and only then stopped", async () => {
    const { run, programs, host } = await resetting({ role: "controller+worker", k0s: leavingCluster() });
    expect(await run()).toBe(0);
    const order = ["kubectl drain node1", "kubectl delete node node1", "etcd leave", "k0s reset"];
    const at = order.map((part) => programs().findIndex((argv) => argv.includes(part)));
    expect(at.every((index) => index >= 0)).toBe(true);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    const stopped = host.calls.indexOf("systemd.stop k0scontroller.service");
    expect(host.calls.findIndex((call) => call.includes("etcd leave"))).toBeLessThan(stopped);
  });

  test("a drain that comes to nothing is said and holds up nothing", async () => {
    const leaving = leavingCluster();
    const { run, said } = await resetting({
      role: "controller+worker",
      k0s: (argv) =>
        argv.startsWith("kubectl drain")
          ? { exitCode: 1, stderr: "error: cannot delete Pods that declare no controller: default/db-0\n" }
          : leaving(argv),
    });
    expect(await run()).toBe(0);
    expect(said.join("\n")).toMatch(/node1 .*db-0.*; what still runs on it ends with it/);
  });

  test("leaving that fails leaves the node what it is: uncordoned, its operation failed, nothing erased", async () => {
    const k0s = (argv: string) => (argv === "etcd leave" ? { exitCode: 1, stderr: "Error: no leader\n" } : undefined);
    const failing = await resetting({ role: "controller+worker", k0s });
    const { run, state, host, operation } = failing;
    expect(await run()).toBe(1);
    expect(state.operations.get(operation)).toMatchObject({ phase: "failed" });
    expect(state.operations.get(operation)?.failureReason).toContain("no leader");
    expect(failing.isCordoned()).toBe(false);
    const before = await resetting({ role: "controller+worker", k0s, isCordoned: true });
    expect([await before.run(), before.isCordoned()]).toEqual([1, true]);
    expect([host.unitTable.get("k0scontroller.service")?.activeState, host.text(UNIT)]).toEqual([
      "active",
      "[Service]\n",
    ]);
    expect(await isResetting(host, paths)).toBe(false);
    expect(state.baseline.get()).toBeDefined();
  });

  test("etcd that does not answer after a restart in the middle is waited for, and believed gone if it was told", async () => {
    const silent = (argv: string) =>
      argv.startsWith("etcd") ? { exitCode: 1, stderr: "Error: context deadline exceeded\n" } : undefined;
    const told = await resetting({ role: "controller", k0s: silent }, { isLeaving: true });
    expect(await told.run()).toBe(0);
    expect(told.said.join("\n")).toContain("its answer was not heard");
    const untold = await resetting({ role: "controller", k0s: silent });
    expect(await untold.run()).toBe(1);
    expect(untold.state.baseline.get()).toBeDefined();
    expect(await isResetting(untold.host, paths)).toBe(false);
  });
});

describe("nothing is deleted through a kept mount", () => {
  const unit = "[Mount]\nWhat=/dev/x\nWhere=/srv/data\n";
  const folder = "/etc/systemd/system";

  test("data disks and what containers mounted are unmounted before k0s reset", async () => {
    const mounts = ["/var", "/srv/data", "/run/k0s/containerd/a/rootfs", "/var/lib/k0s/kubelet/pods/p/v"];
    const { run, programs, host } = await resetting({ mounts });
    host.put(`${folder}/srv-data.mount`, unit);
    expect(await run()).toBe(0);
    const k0s = programs().indexOf("/usr/bin/k0s reset");
    for (const argv of ["umount /srv/data", "umount --lazy /run/k0s/containerd/a/rootfs"]) {
      expect(programs()).toContain(argv);
      expect(programs().indexOf(argv)).toBeLessThan(k0s);
    }
    expect(host.text("/proc/self/mounts")).toBe("/dev/x /var ext4 rw 0 0\n");
  });

  test("one that stays busy: the node restarts once and goes on; busy again it fails, and k0s was never reset", async () => {
    const busy: FakeProgram = () => ({ exitCode: 32, stderr: "umount: /srv/data: target is busy.\n" });
    const { run, programs, host, state, operation } = await resetting({ mounts: ["/srv/data"], umount: busy });
    host.put(`${folder}/srv-data.mount`, unit);
    expect(await run()).toBe(0);
    expect(isRebooted(programs())).toBe(true);
    expect(await readResetIntent(host, paths)).toMatchObject({ ok: true, value: { restarts: 1 } });
    expect(host.node(paths.resetErasing)).toBeDefined();
    expect(await run()).toBe(1);
    expect(state.operations.get(operation)?.failureReason).toContain("/srv/data can't be unmounted: umount:");
    expect(programs()).not.toContain("/usr/bin/k0s reset");
    // What is to be done is not forgotten, and can be asked for again.
    expect(await isResetting(host, paths)).toBe(true);
  });

  test("what is mounted below a folder that we empty is refused, whoever mounted it", async () => {
    const { run, programs, host, said } = await resetting(
      { mounts: ["/opt", "/opt/cni/bin/foreign"] },
      { restarts: 1 },
    );
    host.put("/opt/cni/bin/foreign/file", "precious");
    expect(await run()).toBe(1);
    expect(said.join("\n")).toContain("/opt/cni/bin/foreign is mounted");
    expect([programs().includes("/usr/bin/k0s reset"), host.text("/opt/cni/bin/foreign/file")]).toEqual([
      false,
      "precious",
    ]);
  });

  test.each(["/var/log/pods", "/opt/cni/bin", "/var/lib/corium/backups"])(
    "a disk that somebody mounted at %s was emptied",
    async (point) => {
      const mounts = ["/opt", "/usr/libexec/k0s", "/var/lib/corium", point];
      const { run, programs, host, said } = await resetting({ mounts }, { restarts: 1 });
      host.put(`${point}/file`, "precious");
      expect(await run()).toBe(1);
      expect(said.join("\n")).toContain(`${point} is mounted`);
      expect([programs().includes("/usr/bin/k0s reset"), host.text(`${point}/file`)]).toEqual([false, "precious"]);
    },
  );

  test("mounted below the state when all of k0s is gone already: not through that either", async () => {
    const mounts = ["/var/lib/corium", "/var/lib/corium/backups"];
    const { run, host, said } = await resetting({ mounts }, { restarts: 1 });
    host.put("/var/lib/corium/backups/file", "precious");
    for (const path of [UNIT, `${paths.keptEtc}${UNIT.slice("/etc".length)}`]) await host.files.remove(path);
    expect(await run()).toBe(1);
    expect(said.join("\n")).toContain("/var/lib/corium/backups is mounted");
    expect(host.text("/var/lib/corium/backups/file")).toBe("precious");
  });
});

test("B131: nothing of the network plug-in is left for the next one", async () => {
  const { run, host } = await resetting();
  const files = ["/opt/cni/bin/calico", "/etc/cni/net.d/10-calico.conflist", "/usr/libexec/k0s/kubelet-plugins/x"];
  for (const path of files) host.put(path, "");
  expect(await run()).toBe(0);
  expect(files.filter((path) => host.node(path) !== undefined)).toEqual([]);
});

test("k0s that runs although it was stopped is not worked round", async () => {
  const running = () => ({
    exitCode: 1,
    stderr: "Error: another k0s process is still running, please stop k0s before reset\n",
  });
  const { run, host, said } = await resetting(
    { k0s: (argv) => (argv === "reset" ? running() : undefined) },
    { restarts: 1 },
  );
  host.put("/var/lib/k0s/pki/ca.key", "");
  expect(await run()).toBe(1);
  expect(said.join("\n")).toContain("still running");
  expect(host.node("/var/lib/k0s/pki/ca.key")).toBeDefined();
});

/** Once told to leave, the local member answers nothing more. */
function leavingCluster(): (argv: string) => ReturnType<FakeProgram> | undefined {
  let hasLeft = false;
  return (argv) => {
    if (argv === "etcd leave") {
      hasLeft = true;
      return "";
    }
    return hasLeft && argv.startsWith("etcd")
      ? { exitCode: 1, stderr: "Error: etcdserver: server stopped\n" }
      : undefined;
  };
}
