// budget: 2400 s, last
/**
 * Power goes at the worst moments, and the machine ends as it would have without. One set of disks goes through all
 * cuts in sequence; each test goes on with what the one before left. QEMU is killed: what the guest had not yet sent to
 * its disks is lost, what it had is there.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Operation } from "../../state/model.ts";
import { HELLO_ADDON, K0S_UNIT, MIRRORED_NODE } from "./harness/documents.ts";
import { createRaw, readAt } from "./harness/disk.ts";
import { testImage } from "./harness/image.ts";
import { contentOfFiles, readDatabase, setFault, synchronizeClock, unitRun } from "./harness/inside.ts";
import { installedSystem } from "./harness/installed.ts";
import { openOperator } from "./harness/node.ts";
import type { DiskOptions } from "./harness/options.ts";
import { freePort, type Vm, withVm } from "./harness/vm.ts";

const MARKER = "/var/lib/corium/bootstrapped";
// On the data disk, which is mounted long after the API's daemon began.
const MANIFESTS = "/var/lib/k0s/manifests/site";
const withAddon = `${MIRRORED_NODE}${HELLO_ADDON}manifests:
  - name: site
    files:
      - name: namespace.yaml
        content: "{apiVersion: v1, kind: Namespace, metadata: {name: site}}"
`;
const withNewerAddon = withAddon.replace("1.2.3", "1.2.4");

const image = await testImage();
const operator = await openOperator();
const root = mkdtempSync(join(tmpdir(), "corium-cuts-"));
afterAll(() => {
  operator.dispose();
  rmSync(root, { recursive: true, force: true });
});

/** The same at each start: cctl knows the node by its address. */
const port = await freePort();

interface Machine {
  readonly disks: readonly DiskOptions[];
  readonly members: readonly string[];
}

async function newMachine(name: string): Promise<Machine> {
  const directory = join(root, name);
  const members = ["data-a", "data-b"].map((serial) => createRaw(join(directory, `${serial}.raw`), 512));
  const system = await installedSystem(image, directory);
  return {
    disks: [system, ...members.map((path, index) => ({ serial: `data-${"ab"[index]}`, path }))],
    members,
  };
}

let whole: Machine | undefined;
/** Chosen before the first cut; nothing later may choose anew. */
let arrayUuid = "";

function machine(): Machine {
  if (whole === undefined) throw new Error("there is no machine: its first boot failed");
  return whole;
}

/** `early` runs before bootstrap has changed anything: it still waits for the time. */
function boot<T>(
  at: Machine,
  name: string,
  use: (vm: Vm) => Promise<T>,
  early: (vm: Vm) => Promise<unknown> = async () => undefined,
): Promise<T> {
  const options = { name, memoryMiB: 1536, disks: at.disks, forwards: [7443], hostPorts: { 7443: port } };
  return withVm(options, async (vm) => {
    await vm.shell.waitReady(240_000);
    await early(vm);
    await synchronizeClock(vm.shell);
    return use(vm);
  });
}

async function operations(): Promise<readonly Operation[]> {
  const ran = await operator.cctl(["operations", "node1", "--output", "json"], 20_000);
  if (ran.exitCode !== 0) return [];
  return (JSON.parse(ran.stdout) as { readonly operations: readonly Operation[] }).operations;
}

const bootstraps = async (): Promise<readonly Operation[]> =>
  (await operations()).filter(({ kind }) => kind === "bootstrap");

/** Until the bootstrap is at this step; one that is past it or failed ends the wait: then the cut would prove nothing. */
async function waitForStep(id: string, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const [operation] = await bootstraps();
    const step = operation?.steps.find((each) => each.id === id);
    if (step?.state === "running") return;
    const isPast = step !== undefined && step.state !== "pending";
    if (isPast || operation?.phase === "failed" || performance.now() > deadline)
      throw new Error(`the bootstrap was not found at ${id}: ${JSON.stringify(operation)}`);
    await Bun.sleep(500);
  }
}

async function waitForApplyStep(id: string): Promise<void> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const [newest] = (await operations()).filter(({ kind }) => kind === "apply");
    if (newest?.phase === "running" && newest.steps.some((step) => step.id === id && step.state === "running")) return;
    if (performance.now() > deadline) throw new Error(`no apply was found at ${id}: ${JSON.stringify(newest)}`);
    await Bun.sleep(200);
  }
}

/** What of the array a member shows, read from outside: superblock 1.2, and the ext4 superblock inside. */
function lookAt(member: string): { readonly array: string; readonly isExt4: boolean; readonly label: string } {
  const md = readAt(member, 4096, 256);
  if (md.readUInt32LE(0) !== 0xa92b4efc) throw new Error(`${member} is no member of an array`);
  const words = [0, 4, 8, 12].map((at) => md.subarray(16 + at, 20 + at).toString("hex"));
  const ext4 = readAt(member, Number(md.readBigUInt64LE(128)) * 512 + 1024, 256);
  const label = ext4.subarray(0x78, 0x88).toString("latin1").replaceAll("\0", "");
  return { array: words.join(":"), isExt4: ext4.readUInt16LE(0x38) === 0xef53, label };
}

async function waitHealthy(): Promise<void> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const node = await operator.status("node1");
    if (node?.health.verdict === "healthy") {
      expect(node.storage.arrays).toMatchObject([{ name: "data", active: 2, expected: 2 }]);
      return;
    }
    if (performance.now() > deadline) throw new Error(`node1 is not healthy: ${JSON.stringify(node?.health)}`);
    await Bun.sleep(1000);
  }
}

/** The same array and filesystem as were chosen at the start, mounted, and one k0s that runs. */
async function expectWhole(vm: Vm): Promise<void> {
  await operator.waitInService("node1", 300_000);
  const { shell } = vm;
  // In service from its marker on; at a later boot everything else comes up after the API.
  await shell.must("until k0s kubectl get nodes | grep -q '^node1  *Ready'; do sleep 1; done", 120_000);
  await waitHealthy();
  expect(await shell.must("mdadm --detail --export /dev/md/data | sed -n s/^MD_UUID=//p")).toBe(arrayUuid);
  expect(await shell.must("findmnt -no SOURCE,FSTYPE,LABEL /var/lib/k0s")).toMatch(/^\/dev\/md\S+ +ext4 +corium-data$/);
  expect(await shell.must("systemctl list-unit-files --no-legend 'k0s*' | awk '{print $1}'")).toBe(K0S_UNIT);
  expect(await unitRun(shell, K0S_UNIT)).toMatchObject({ activeState: "active", restarts: 0 });
  expect(await shell.must(`ls ${MARKER}`)).toBe(MARKER);
  expect(await bootstraps()).toMatchObject([{ phase: "succeeded" }]);
  // What is kept of /etc is put in place without a word: the image's own links are not part of it.
  expect(vm.console.text()).not.toContain("can't create");
  const { journal, owned } = await readDatabase(shell);
  expect(owned).toEqual([{ kind: "raid", name: "data", uuid: arrayUuid }]);
  expect(journal.filter(({ is_closed }) => is_closed === 0)).toEqual([]);
}

/** The first boot up to the cut; whether it came while mkfs was at work. */
async function cutInMkfs(at: Machine): Promise<boolean> {
  await boot(at, "cut-mkfs", async (vm) => {
    // As slow as an old USB stick, so that mkfs is there long enough to be met.
    for (const id of ["disk1", "disk2"].map((each) => `/machine/peripheral/${each}/virtio-backend`))
      await vm.qmp.execute("block_set_io_throttle", {
        id,
        bps: 0,
        bps_rd: 0,
        bps_wr: 1_000_000,
        iops: 0,
        iops_rd: 0,
        iops_wr: 0,
      });
    await operator.enroll(vm, "node1", 240_000, MIRRORED_NODE);
    // Sees mkfs, and sees something of it go to the array; at the end mkfs must still be there.
    const seen = await vm.shell.must(
      `found=
       until [ -n "$found" ]; do
         for comm in /proc/[0-9]*/comm; do
           name=; read -r name 2>/dev/null <$comm
           [ "$name" = mkfs.ext4 ] && found=\${comm%/comm}
         done
       done
       array=$(basename $(readlink -f /dev/md/data))
       until read -r _ _ _ _ _ _ written _ </sys/block/$array/stat && [ $written -gt 0 ]; do
         [ -d $found ] || break
       done
       name=; read -r name 2>/dev/null <$found/comm
       echo "$name $written"`,
      300_000,
    );
    expect(seen).toMatch(/^mkfs.ext4 [1-9]/);
    await vm.kill();
  });
  // The label is set after mkfs has ended, and is the mark that it did.
  return at.members.every((member) => lookAt(member).label === "");
}

describe("power is cut", () => {
  test("in the middle of mkfs", async () => {
    // A cut that came too late proves nothing: again, on a new machine.
    for (let attempt = 1; whole === undefined; attempt += 1) {
      if (attempt > 3) throw new Error("mkfs was over before the cut, three times");
      const at = await newMachine(`machine${attempt}`);
      if (await cutInMkfs(at)) whole = at;
    }
    const found = whole.members.map(lookAt);
    arrayUuid = found[0]?.array ?? "";
    expect(found.map(({ array }) => array)).toEqual([arrayUuid, arrayUuid]);
  }, 900_000);

  test("right after k0s install: the filesystem was made under the UUIDs of before", async () => {
    await boot(machine(), "cut-install", async (vm) => {
      // Bootstrap is held at the very moment that the unit appears: nothing after `k0s install` has happened yet.
      const held = await vm.shell.must(
        `[ ! -e /etc/systemd/system/${K0S_UNIT} ] || { echo too late; exit 1; }
         until [ -e /etc/systemd/system/${K0S_UNIT} ]; do :; done
         pid=$(systemctl show corium-bootstrap -p MainPID --value)
         kill -STOP $pid && sed -n 's/^State:[[:space:]]*//p' /proc/$pid/status
         [ ! -e ${MARKER} ] || { echo too late; exit 1; }
         systemctl show ${K0S_UNIT} -p ActiveState --value`,
        300_000,
      );
      expect(held).toMatch(/^T \(stopped\)\ninactive$/);
      expect(await vm.shell.must("mdadm --detail --export /dev/md/data | sed -n s/^MD_UUID=//p")).toBe(arrayUuid);
      await waitForStep("k0s:install", 30_000);
      await vm.kill();
    });
    expect(lookAt(machine().members[0] ?? "")).toEqual({ array: arrayUuid, isExt4: true, label: "corium-data" });
  }, 420_000);

  test("after k0s was started, before the marker", async () => {
    const cut = async (vm: Vm): Promise<void> => {
      await waitForStep("k0s:ready", 300_000);
      expect(await unitRun(vm.shell, K0S_UNIT)).toMatchObject({ activeState: "active" });
      expect(await vm.shell.must(`[ -e ${MARKER} ] && echo there || echo absent`)).toBe("absent");
      await vm.kill();
    };
    await boot(machine(), "cut-start", cut, ({ shell }) => setFault(shell, "never-ready"));
  }, 420_000);

  let before = "";
  let documents: unknown;

  test("during an apply: bootstrap had gone on and ran once; k0s.yaml was written, nothing recorded", async () => {
    await boot(machine(), "cut-apply", async (vm) => {
      await expectWhole(vm);
      const { shell } = vm;
      before = await contentOfFiles(shell);
      const database = await readDatabase(shell);
      documents = { documents: database.documents, baseline: database.baseline };
      await setFault(shell, "never-ready");
      const pid = (await unitRun(shell, K0S_UNIT)).mainPid;
      writeFileSync(join(operator.directory, "addon.yaml"), withAddon);
      const applying = operator.cctl(["apply", "node1", "--file", "addon.yaml", "--yes"], 120_000);
      await shell.must(
        `until pid=$(systemctl show ${K0S_UNIT} -p MainPID --value) && [ "$pid" != ${pid} ] && [ "$pid" != 0 ]; do sleep 0.2; done
         test -f ${MANIFESTS}/namespace.yaml && grep -q site/hello /etc/k0s/k0s.yaml && grep -q site/hello /var/lib/corium/etc/k0s/k0s.yaml`,
        120_000,
      );
      const now = await readDatabase(shell);
      expect({ documents: now.documents, baseline: now.baseline }).toEqual(documents as typeof database);
      expect((await operations()).filter(({ kind }) => kind === "apply")).toMatchObject([{ phase: "running" }]);
      await vm.kill();
      expect((await applying).exitCode).not.toBe(0);
    });
  }, 420_000);

  test("the apply was undone before k0s started, and the same apply goes through", async () => {
    await boot(machine(), "cut-after", async (vm) => {
      await expectWhole(vm);
      const { shell } = vm;
      expect(await contentOfFiles(shell)).toBe(before);
      expect(await shell.must(`mountpoint -q /var/lib/k0s && ! test -e ${MANIFESTS} && echo gone`)).toBe("gone");
      const now = await readDatabase(shell);
      expect({ documents: now.documents, baseline: now.baseline }).toEqual(documents as typeof now);
      const [undone] = (await operations()).filter(({ kind }) => kind === "apply");
      expect(undone).toMatchObject({ phase: "rolled-back" });
      expect(undone?.failureReason).toContain("everything was put back");
      expect((await operator.cctl(["diff", "node1"])).stdout).toBe("in-sync\n");
      expect(await shell.must("systemctl show corium-bootstrap -p ConditionResult --value")).toBe("no");
      // k0s waited for that: it never read the file that was taken back, so nothing was released and uninstalled again.
      const log = await shell.must(`journalctl --boot --unit ${K0S_UNIT} --output cat`);
      expect(log.match(/control plane is up/g)).toHaveLength(1);
      expect(log).not.toContain("hello");
      expect(log).not.toContain("applier-site");

      await operator.must(["apply", "node1", "--file", "addon.yaml", "--yes"], 240_000);
      expect(await shell.must("cat /etc/k0s/k0s.yaml")).toContain("site/hello");
      expect(await shell.must("k0s kubectl get chart -n kube-system k0s-addon-chart-hello -o name")).toContain("hello");

      // The next cut is after the record: k0s answers again, helm has not begun.
      await setFault(shell, "chart-waits", "hello");
      writeFileSync(join(operator.directory, "newer.yaml"), withNewerAddon);
      const applying = operator.cctl(["apply", "node1", "--file", "newer.yaml", "--yes"], 120_000);
      await waitForApplyStep("apply:charts");
      await vm.kill();
      expect((await applying).exitCode).not.toBe(0);
    });
  }, 600_000);

  test("after an apply was recorded: the new document stays, and helm goes on", async () => {
    await boot(machine(), "cut-recorded", async (vm) => {
      await expectWhole(vm);
      const { shell } = vm;
      expect(await shell.must("cat /etc/k0s/k0s.yaml")).toContain("1.2.4");
      expect(await shell.must("cat /etc/corium/config.yaml")).toBe(withNewerAddon.trimEnd());
      expect((await operator.cctl(["diff", "node1"])).stdout).toBe("in-sync\n");
      const applies = (await operations()).filter(({ kind }) => kind === "apply");
      // Nobody waited for the release any more, and it says so.
      expect(applies[0]?.phase).toBe("failed");
      expect(applies[0]?.failureReason).toMatch(/it had been recorded.*helm/);
      const again = await operator.must(["apply", "node1", "--file", "newer.yaml", "--yes"]);
      expect(again).toContain("unchanged");
      const chart = "k0s kubectl get chart -n kube-system k0s-addon-chart-hello -o yaml";
      await shell.must(`until ${chart} | grep -q 'appVersion: .*1.2.4'; do sleep 1; done`, 60_000);
    });
  }, 600_000);
});
