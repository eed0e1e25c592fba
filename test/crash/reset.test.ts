/** A reset, cut at every call that it makes of the machine: with data disks that are kept, and with those that are wiped. */
// budget: 900 s
import { describe, expect, test } from "bun:test";
import { readInventory } from "../../disks/driver.ts";
import { appError } from "../../kit/app-error.ts";
import { nodePaths } from "../../kit/paths.ts";
import { err, ok } from "../../kit/result.ts";
import { parseIntent, renderIntent } from "../../provision/reset/intent.ts";
import type { ResetIntent } from "../../provision/reset/model.ts";
import { memoryErasable } from "../../state/erase.ts";
import { carryOutReset } from "../../supervisor/reset.ts";
import { isResetting } from "../../supervisor/reset-files.ts";
import type { FakeHost, FakeProgram } from "../support/fake-host.ts";
import { fakeHost } from "../support/fake-host.ts";
import { BlockMachine, MD_DATA } from "./block-machine.ts";
import type { Subject } from "./crash-points.ts";
import { CUTS, survey, WAYS } from "./crash-points.ts";
import { diskTools } from "./disk-tools.ts";
import { assemble, raidTools } from "./raid-tools.ts";
import { VolatileDisk } from "./volatile-disk.ts";

const paths = nodePaths();
const MIB = 1024 ** 2;
const ARRAY = "11111111:22222222:33333333:44444444";
const FILESYSTEM = "aaaaaaaa-1111-4111-8111-111111111111";
const KEPT = paths.keptEtc;
const WANTS = "local-fs.target.wants";
const K0S_UNIT = "systemd/system/k0scontroller.service";
const identity = (serial: string) => ({ serial, sizeBytes: 512 * MIB });

const document = `role: ROLE
node: { name: node1 }
cluster: { name: demo }
raid:
  - { name: data, level: 1, devices: [{ serial: A }, { serial: B }], mountPoint: /var/lib/k0s }
`;

const mountUnit = `[Mount]\nWhat=/dev/disk/by-uuid/${FILESYSTEM}\nWhere=/var/lib/k0s\nType=ext4\n`;
/** The kept part of /etc of a node in service. */
const ETC: Readonly<Record<string, string>> = {
  "machine-id": "0123456789abcdef0123456789abcdef\n",
  hostname: "node1\n",
  "corium/config.yaml": document,
  "k0s/k0s.yaml": "spec: {}\n",
  "systemd/network/50-corium-wg0.netdev": "[NetDev]\nName=wg0\n",
  "systemd/network/corium-keys/wg0.key": "secret\n",
  [K0S_UNIT]: "[Service]\nExecStart=/usr/bin/k0s controller\n",
  "systemd/system/var-lib-k0s.mount": mountUnit,
  [`systemd/system/${WANTS}/var-lib-k0s.mount`]: "",
  "mdadm/mdadm.conf.d/corium-data.conf": `ARRAY /dev/md/data UUID=${ARRAY}\n`,
};
const STATE: Readonly<Record<string, string>> = {
  "api/server.pem": "key\n",
  "luks/vault.key": "passphrase\n",
  bootstrapped: "",
  "corium.db": "",
};

function disks(): readonly VolatileDisk[] {
  const filesystem = { type: "ext4", run: -7, uuid: FILESYSTEM, label: "corium-data" };
  const member = (serial: string, role: number): VolatileDisk => {
    const made = new VolatileDisk(serial, 512 * MIB);
    made.put("4096:md", { uuid: ARRAY, name: "any:data", level: "raid1", role, devices: 2 });
    made.put(`${MD_DATA}:super`, filesystem);
    made.put(`${MD_DATA}:body`, -7);
    made.put(`${MD_DATA}:file:-7:/precious`, "data");
    return made;
  };
  const other = new VolatileDisk("BYSTANDER", 512 * MIB);
  other.put("0:super", { type: "ext4", run: -8, uuid: "bbbbbbbb-1111-4111-8111-111111111111", label: "other" });
  other.put("0:body", -8);
  return [member("A", 0), member("B", 1), other];
}

interface Case {
  readonly role: "single" | "controller+worker";
  readonly isWipingDisks: boolean;
  readonly isK0sResetFailing?: boolean;
}

interface Sabotage {
  readonly programs?: Readonly<Record<string, FakeProgram>>;
  /** k0s is reset with everything mounted. */
  readonly isUnmountSkipped?: boolean;
  readonly isClaimableTooSoon?: boolean;
}

function subject(of: Case, onCall?: () => void, sabotage: Sabotage = {}): Subject {
  const machine = new BlockMachine(disks());
  const records = memoryErasable();
  const violations: string[] = [];
  /** Mounts of containers, as a run of k0s makes them; they go with the power. */
  let leftovers: readonly string[] = [];
  let arePodsRunning = false;
  let isRebooting = false;
  let isCordoned = false;
  /** Names of etcd's members, kept by the others. */
  let members: readonly string[] = ["node1", "node2", "node3"];

  const publish = (host: FakeHost): void => {
    const lines = [
      "/dev/sys8 /var ext4 rw 0 0",
      "/dev/sys7 /var/lib/corium ext4 rw 0 0",
      ...(sabotage.isUnmountSkipped === true
        ? []
        : [
            ...machine.mounts.map(({ device, point }) => `${device.path} ${point} ext4 rw 0 0`),
            ...leftovers.map((point) => `overlay ${point} overlay rw 0 0`),
          ]),
    ];
    host.put("/proc/self/mounts", `${lines.join("\n")}\n`);
  };
  const unmount = (host: FakeHost, point: string): void => {
    machine.mounts = machine.mounts.filter((each) => each.point !== point);
    leftovers = leftovers.filter((each) => each !== point);
    publish(host);
  };
  const isMounted = (path: string): boolean =>
    machine.mounts.some(({ point }) => path === point || path.startsWith(`${point}/`));

  const disk = diskTools(machine);
  const host = fakeHost({
    ...(onCall === undefined ? {} : { onCall }),
    files: { "/proc/sys/kernel/hostname": "node1\n" },
    onWrite: (path, node) => {
      if (node === undefined && isMounted(path)) violations.push(`${path} was deleted through a mount`);
    },
    programs: {
      ...disk,
      ...raidTools(machine),
      umount: ({ argv }, fake) => {
        const point = argv.at(-1) ?? "";
        if (arePodsRunning && !argv.includes("--lazy"))
          return { exitCode: 32, stderr: `umount: ${point}: target is busy.\n` };
        unmount(fake, point);
        return "";
      },
      networkctl: () => "",
      sync: (request, fake) => {
        if (!request.argv.includes("--file-system")) return disk["sync"]?.(request, fake) ?? "";
        if (!fake.isTearing) fake.sync();
        return "";
      },
      systemctl: ({ argv }) => {
        if (argv.includes("reboot")) isRebooting = true;
        return "";
      },
      k0s: (request, fake) => k0s(request.argv.slice(1), fake),
      ...sabotage.programs,
    },
    http: async ({ url }) =>
      url.includes("192.0.2.1") ? err(appError("tls", "certificate required")) : err(appError("refused", "refused")),
    units: {
      "corium-pods.service": { activeState: "active", isEnabled: true, onStop: () => (arePodsRunning = false) },
      "corium-apid.service": { activeState: "active", isEnabled: true },
      "corium-bootstrap.service": {},
      "k0scontroller.service": { onStart: startK0s },
      "var-lib-k0s.mount": {
        onStart: mountData,
        onStop: (fake) => {
          if (sabotage.isUnmountSkipped !== true) unmount(fake, "/var/lib/k0s");
        },
      },
    },
  });

  function startK0s(fake: FakeHost) {
    // systemd looks for it: ConditionPathExists in the unit's drop-in.
    if (fake.node(paths.resetErasing) !== undefined) return err(appError("condition", "k0s is held back"));
    arePodsRunning = true;
    leftovers = ["/run/k0s/containerd/a/rootfs", "/var/lib/k0s/kubelet/pods/p/volumes/v"];
    fake.put("/run/k0s/status.sock", "");
    fake.put("/var/lib/kubelet/pods.json", "");
    fake.put("/opt/cni/bin/bridge", "");
    publish(fake);
    return ok(undefined);
  }

  function mountData(fake: FakeHost) {
    const device = machine.find(`/dev/disk/by-uuid/${FILESYSTEM}`);
    if (device === undefined) return err(appError("systemd", "the device is not there"));
    machine.mounts = [{ device, point: "/var/lib/k0s", type: "ext4", aliases: [] }];
    publish(fake);
    return ok(undefined);
  }

  function k0s(
    argv: readonly string[],
    fake: FakeHost,
  ): string | { readonly exitCode: number; readonly stderr: string } {
    const isUp = fake.unitTable.get("k0scontroller.service")?.activeState === "active";
    const says = (stderr: string) => ({ exitCode: 1, stderr: `Error: ${stderr}\n` });
    switch (argv.slice(0, 2).join(" ")) {
      case "etcd member-list":
        if (!isUp || !members.includes("node1")) return says("etcdserver: server stopped");
        return JSON.stringify({
          members: Object.fromEntries(members.map((name) => [name, `https://192.0.2.1${name.slice(-1)}:2380`])),
        });
      case "kubectl get":
        return JSON.stringify({
          items: [{ kind: "Node", metadata: { name: "node1" }, spec: isCordoned ? { unschedulable: true } : {} }],
        });
      case "kubectl patch":
        isCordoned = argv.join(" ").includes('"unschedulable":true');
        return "";
      case "etcd leave":
        if (!isUp) return says("not running");
        members = members.filter((name) => name !== "node1");
        return "";
      case "reset":
        if (isUp) return says("another k0s process is still running, please stop k0s before reset");
        for (const { point } of machine.mounts) violations.push(`k0s reset deleted through ${point}`);
        for (const path of [...fake.paths("/var/lib/k0s/"), ...fake.paths("/run/k0s/")]) fake.drop(path);
        if (of.isK0sResetFailing === true) return says("failed to delete /run/k0s: device or resource busy");
        fake.drop(`/etc/${K0S_UNIT}`);
        return "";
      default:
        return "";
    }
  }

  function powerOn(): void {
    leftovers = [];
    arePodsRunning = false;
    isRebooting = false;
    for (const unit of host.unitTable.values()) unit.isEnabled = false;
    for (const name of ["corium-pods.service", "corium-apid.service"]) {
      const unit = host.unitTable.get(name);
      if (unit !== undefined) unit.isEnabled = true;
    }
    host.boot();
    if (host.text("/etc/mdadm/mdadm.conf.d/corium-data.conf") !== undefined)
      assemble(
        machine,
        ARRAY,
        machine.devices().filter(({ type }) => type === "disk"),
      );
    machine.publish(host);
    publish(host);
    for (const [name, link] of [
      ["var-lib-k0s.mount", `/etc/systemd/system/${WANTS}/var-lib-k0s.mount`],
      ["k0scontroller.service", `/etc/${K0S_UNIT}`],
    ] as const) {
      if (host.node(link) === undefined) continue;
      const unit = host.unitTable.get(name);
      const fate = unit?.onStart?.(host);
      if (unit !== undefined) Object.assign(unit, { activeState: fate?.ok === true ? "active" : "inactive" });
    }
    look();
  }

  /** At each start of the API: whoever may claim the node must find nothing of what it was. */
  function look(): void {
    const { state } = records;
    const isHeldBack =
      sabotage.isClaimableTooSoon !== true &&
      (host.node(paths.resetIntent) !== undefined || host.node(paths.resetErasing) !== undefined);
    if (state.claim.get() !== undefined || state.baseline.get() !== undefined || isHeldBack) return;
    const left = remains();
    if (left.length > 0) violations.push(`it could be claimed with ${left.join(", ")} left`);
    if (state.meta.get("held") === undefined) violations.push("it could be claimed and was not held");
  }
  const remains = (): readonly string[] => [
    ...host.paths(KEPT).filter((path) => path !== `${KEPT}/machine-id`),
    ...[paths.marker, `${paths.stateDir}/api/server.pem`, `${paths.stateDir}/luks/vault.key`].filter(
      (path) => host.node(path) !== undefined,
    ),
    ...host.paths("/var/lib/k0s/"),
    ...host.paths("/opt/cni/bin/"),
  ];

  for (const [name, text] of Object.entries(ETC)) host.put(`${KEPT}/${name}`, text);
  for (const [name, text] of Object.entries(STATE)) host.put(`${paths.stateDir}/${name}`, text);
  host.put("/var/lib/k0s/manifests/left", "");
  const intent: ResetIntent = {
    version: 1,
    isWipingDisks: of.isWipingDisks,
    mayDestroyCluster: of.role === "single",
    requestedAtMs: 1,
    requestedBy: "operator alice",
    restarts: 0,
  };
  const ask = (): void => {
    host.put(paths.resetIntent, renderIntent(intent));
    host.sync();
  };
  ask();
  const { state } = records;
  state.claim.record({ operatorCA: "pem", fingerprint: "SHA256:ca", atMs: 1, by: "enroll" });
  const text = document.replace("ROLE", of.role);
  const stored = state.documents.add({ text, atMs: 1, requester: { kind: "document" }, origin: "enroll" });
  state.baseline.set({
    document: stored,
    hostname: "node1",
    machineId: "0123",
    addresses: {},
    k0sVersion: "v1",
    inputHash: "0",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
  });
  state.meta.set("in-service-at-ms", "1");
  state.owned.put({
    kind: "raid",
    name: "data",
    uuid: ARRAY,
    filesystemUuid: FILESYSTEM,
    disks: ["A", "B"].map(identity),
  });
  const untouched = machine.disks.filter(({ serial }) => serial === "BYSTANDER" || !of.isWipingDisks);
  powerOn();

  async function once(): Promise<number> {
    isRebooting = false;
    return carryOutReset({
      host,
      paths,
      version: "1",
      readInventory: () => readInventory(host, { mode: "disk" }),
      // A death closes nothing here: the database is in memory, and each of its transactions is whole.
      openErasable: () => ({ ...records, close: () => undefined }),
      say: () => undefined,
    });
  }

  return {
    host,
    async run() {
      // What failed before anything was erased left the node as it was: it is asked for again.
      const isLeftAsItWas = host.node(paths.resetIntent) === undefined && state.meta.get("held") === undefined;
      if (isLeftAsItWas) ask();
      for (let boots = 0; boots < 4; boots += 1) {
        const code = await once();
        const isOver = !(await isResetting(host, paths));
        if (code !== 0) return `exit status ${code}: ${state.events.last().at(-1)?.message ?? "nothing was said"}`;
        if (isRebooting) powerOn();
        if (isOver) return undefined;
      }
      return "it never ends";
    },
    powerCut(lose) {
      machine.powerCut(lose);
      powerOn();
    },
    violations: () => [
      ...violations,
      ...machine.violations,
      ...untouched.filter(({ writes }) => writes > 0).map(({ serial }) => `disk ${serial} was written`),
      ...(state.meta.get("held") === undefined ? ["it is not held"] : []),
      ...(state.claim.get() === undefined ? [] : ["it is claimed"]),
      ...remains().map((path) => `${path} is left`),
      ...(of.role === "single" || !members.includes("node1") ? [] : ["etcd counts it still"]),
    ],
    state: () =>
      JSON.stringify(
        {
          disks: machine.visible(),
          kept: host.paths(paths.stateDir),
          owned: state.owned.list(),
          held: state.meta.get("held") !== undefined,
          operations: state.operations.list().length,
          documents: state.documents.list().length,
        },
        null,
        1,
      ),
    promises: () => [],
    fingerprint: () =>
      JSON.stringify([
        machine.contents(),
        host.paths("/var/lib/"),
        host.paths("/etc/"),
        host.text(paths.resetIntent),
        leftovers,
        arePodsRunning,
        isCordoned,
        members,
        state.meta.get("held"),
        [...host.unitTable].map(([name, { activeState }]) => [name, activeState]),
      ]),
  };
}

const cases: Readonly<Record<string, Case>> = {
  "a single node, data disks kept": { role: "single", isWipingDisks: false },
  "a single node, data disks wiped": { role: "single", isWipingDisks: true },
  "one of three controllers": { role: "controller+worker", isWipingDisks: false },
  "B130: k0s reset fails, and has deleted what a second one needs": {
    role: "single",
    isWipingDisks: false,
    isK0sResetFailing: true,
  },
};

describe("cut at every call, it ends reset, held and unclaimed, and kept disks are not written", () => {
  test.each(Object.entries(cases))(
    "%s",
    async (_, of) => {
      const { calls, deaths, flaws } = await survey((onCall) => subject(of, onCall), { ways: WAYS });
      expect(flaws.slice(0, 5)).toEqual([]);
      expect(calls).toBeGreaterThan(60);
      expect(deaths).toBeGreaterThan(60);
    },
    600_000,
  );
});

test("what is kept is the array with its data, and the record that it is this node's", async () => {
  const kept = subject({ role: "single", isWipingDisks: false });
  expect(await kept.run()).toBeUndefined();
  expect(kept.state()).toContain("/precious");
  expect(JSON.parse(kept.state())).toMatchObject({ owned: [{ name: "data", uuid: ARRAY }] });
  const wiped = subject({ role: "single", isWipingDisks: true });
  expect(await wiped.run()).toBeUndefined();
  expect(JSON.parse(wiped.state())).toMatchObject({ owned: [] });
  expect(wiped.state()).not.toContain("corium-data");
});

test("an intent that nobody can read erases nothing", () => {
  for (const text of ["", "{}", '{"version":2}', "null"])
    expect(parseIntent(text, "/x")).toMatchObject({ ok: false, error: { code: "reset-intent" } });
});

describe("the check can fail", () => {
  const controls: Readonly<Record<string, { readonly sabotage: Sabotage; readonly finds: RegExp }>> = {
    "mounts that are not seen": { sabotage: { isUnmountSkipped: true }, finds: /deleted through/ },
    "a node that could be claimed in the middle": { sabotage: { isClaimableTooSoon: true }, finds: /could be claimed/ },
  };
  test.each(Object.entries(controls))(
    "%s",
    async (_, { sabotage, finds }) => {
      const of: Case = { role: "single", isWipingDisks: false };
      const flaws = await survey((onCall) => subject(of, onCall, sabotage), { ways: CUTS, isControl: true }).then(
        (found) => found.flaws.map(({ problem }) => problem),
        // Found without any cut.
        (thrown: unknown) => [String(thrown)],
      );
      expect(flaws.join("\n")).toMatch(finds);
    },
    600_000,
  );
});
