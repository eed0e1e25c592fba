// budget: 3600 s
/**
 * Encrypted volumes on a real kernel, with a TPM of software: made at the first boot on an array and on a disk, open by
 * themselves at the next; with another TPM the node boots on and says what is locked, and a recovery key opens it. One
 * machine; each test goes on with what the one before left.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeAnswer, OperationsAnswer, RecoveryAnswer } from "../../api/contract.ts";
import { createRaw, runTool, sha256 } from "../qemu/harness/disk.ts";
import { K0S_UNIT } from "../qemu/harness/documents.ts";
import { testImage } from "../qemu/harness/image.ts";
import { synchronizeClock, unitRun } from "../qemu/harness/inside.ts";
import { installedSystem } from "../qemu/harness/installed.ts";
import { openOperator } from "../qemu/harness/node.ts";
import type { DiskOptions } from "../qemu/harness/options.ts";
import { freePort, startVm, type Vm } from "../qemu/harness/vm.ts";

const PASSPHRASE = "a horse of no battery";
const MARK = "nobody reads this on the disk ".repeat(64);

/** The vault lies on an array and is k0s's own; the attic is a disk for whoever wants it. */
const nodeOn = (attic: string): string => `role: single
cluster: { name: demo }
node: { name: node1 }
api: { enabled: true }
raid:
  - { name: crypt, level: 1, devices: [{ serial: data-a }, { serial: data-b }], filesystem: none }
luks:
  - { name: vault, device: /dev/md/crypt, unlock: tpm2, mountPoint: /var/lib/k0s }
  - name: attic
    device: { serial: ${attic} }
    unlock: passphrase
    passphrase: ${PASSPHRASE}
    filesystem: xfs
    mountPoint: /srv/attic
`;

const image = await testImage();
const operator = await openOperator();
const directory = mkdtempSync(join(tmpdir(), "corium-luks-"));
const at = (name: string): string => join(directory, name);
/** The same at each start: cctl knows the node by its address. */
const port = await freePort();

const data = ["data-a", "data-b", "attic", "foreign"].map((serial) => ({ serial, path: createRaw(at(serial), 512) }));
const attic = at("attic");
const foreign = at("foreign");
writeFileSync(at("key"), "somebody else's");
const format = ["--type", "luks2", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--label", "photos"];
await runTool(["cryptsetup", "-q", "luksFormat", ...format, foreign, at("key")]);
const foreignHash = sha256(foreign);

const disks: DiskOptions[] = [await installedSystem(image, directory), ...data];
let started: Vm | undefined;
let recoveryKey = "";
afterAll(async () => {
  await started?.stop();
  operator.dispose();
  rmSync(directory, { recursive: true, force: true });
});

function machine(): Vm {
  if (started === undefined) throw new Error("the machine did not come up");
  return started;
}

/** With the TPM of this name: what another one holds, this one does not. */
async function boot(tpm: string): Promise<Vm> {
  started = await startVm({
    name: "luks",
    memoryMiB: 1536,
    cpus: 2,
    disks,
    forwards: [7443],
    hostPorts: { 7443: port },
    tpm: at(tpm),
  });
  await started.shell.waitReady(600_000);
  return started;
}

async function powerOff(): Promise<void> {
  const vm = machine();
  await vm.powerdown();
  await vm.waitExit(300_000);
  await vm.stop();
  started = undefined;
}

/** Until the node says so of itself; what it said last is in the error. */
async function until(what: string, isSo: (node: NodeAnswer) => boolean, limitMs = 600_000): Promise<NodeAnswer> {
  const deadline = performance.now() + limitMs;
  let last: NodeAnswer | undefined;
  for (;;) {
    last = (await operator.status("node1")) ?? last;
    if (last !== undefined && isSo(last)) return last;
    if (performance.now() > deadline) throw new Error(`not ${what}: ${JSON.stringify(last)}`);
    await Bun.sleep(1000);
  }
}

const stateOf = (node: NodeAnswer, name: string): string | undefined =>
  node.storage.volumes?.find((volume) => volume.name === name)?.state;
const isActive = (node: NodeAnswer): boolean => node.kubernetes?.active === true;

describe("encrypted volumes", () => {
  test("a disk with somebody else's volume, and a TPM that measures nothing: refused whole, not a byte written", async () => {
    const vm = await boot("tpm-a");
    await synchronizeClock(vm.shell);
    await operator.enroll(vm, "node1", 600_000, nodeOn("foreign"));
    let reason: string | undefined;
    for (let tries = 0; reason === undefined && tries < 600; tries += 1) {
      await Bun.sleep(1000);
      const ran = await operator.cctl(["operations", "node1", "--output", "json"]);
      const answer = ran.exitCode === 0 ? (JSON.parse(ran.stdout) as OperationsAnswer) : undefined;
      reason = answer?.operations.find(({ phase }) => phase === "failed")?.failureReason;
    }
    expect(reason).toContain("luks[0].unlock");
    expect(reason).toContain("corium.luks-pcr7=acknowledged");
    expect(reason).toContain('crypto_LUKS "photos" on the whole disk');
    for (const { serial } of data) expect([serial, await vm.writeCount(serial)]).toEqual([serial, 0]);
    expect(sha256(foreign)).toBe(foreignHash);
  }, 1_500_000);

  test("made at the first boot: the TPM alone opens the vault, the attic's key is a file of mode 0600", async () => {
    const { shell } = machine();
    // As if it were on the command line; only planning reads it.
    await shell.must(
      `{ tr -d '\\n' </proc/cmdline; echo ' corium.luks-pcr7=acknowledged'; } >/run/cmdline
       mount --bind /run/cmdline /proc/cmdline`,
    );
    writeFileSync(join(operator.directory, "node.yaml"), nodeOn("attic"));
    await operator.must(["apply", "node1", "--file", "node.yaml", "--yes"], 600_000);
    await operator.waitInService("node1", 900_000);
    const node = await until("healthy", ({ health }) => health.verdict === "healthy");
    expect(node.storage.volumes).toEqual([
      { name: "vault", unlock: "tpm2", state: "open", hasRecoveryKey: false },
      { name: "attic", unlock: "passphrase", state: "open", hasRecoveryKey: false },
    ]);
    expect(await shell.must("findmnt -no FSTYPE /var/lib/k0s; findmnt -no FSTYPE /srv/attic")).toBe("ext4\nxfs");
    const dump = await shell.must("systemd-cryptenroll /dev/md/crypt | tail -n +2");
    expect(dump.trim().split(/\s+/)).toEqual(["1", "tpm2"]);
    expect(await shell.must("cd /var/lib/corium/luks && stat -c '%n %a' *")).toBe("attic.key 600");
    expect(await shell.must("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).not.toContain("horse");
    expect(await operator.must(["events", "node1"])).toContain("volume vault has no recovery key");
    await shell.must(`printf '%s' '${MARK}' >/srv/attic/mark; sync`);
  }, 1_500_000);

  test("a recovery key is given out once, and stands nowhere on the node", async () => {
    const minted = await operator.must(["luks", "recovery", "node1", "vault", "--output", "json"], 300_000);
    recoveryKey = (JSON.parse(minted) as RecoveryAnswer).recoveryKey;
    expect(recoveryKey).toMatch(/^[a-z]{8}(-[a-z]{8}){7}$/);
    const again = await operator.cctl(["luks", "recovery", "node1", "vault"], 300_000);
    expect(again.exitCode).toBe(1);
    expect(again.stderr).toContain("has a recovery key already");
    const { shell } = machine();
    const looked = await shell.run(
      `grep -rl -D skip --exclude='.t*' -F '${recoveryKey.slice(0, 30)}' /var/lib/corium /var/log/journal /etc /run`,
      300_000,
    );
    expect([looked.exitCode, looked.stdout]).toEqual([1, ""]);
    expect(await operator.must(["audit", "node1"])).toContain("/v1/luks/vault/recovery");
    const node = await until("shown", ({ storage }) => storage.volumes?.[0]?.hasRecoveryKey === true);
    expect(stateOf(node, "vault")).toBe("open");
  }, 900_000);

  test("at power-off pods end first, then volumes are closed; at the next boot both open by themselves", async () => {
    // A process in a pod that holds a file of the attic open, and does not end for being asked.
    await machine().shell.must(
      `mkdir -p /sys/fs/cgroup/kubepods/pod1
       sh -c 'trap "" TERM; exec 3>/srv/attic/busy; echo $$ >/sys/fs/cgroup/kubepods/pod1/cgroup.procs; while :; do sleep 5; done' >/dev/null 2>&1 &
       sleep 1; grep -q . /sys/fs/cgroup/kubepods/pod1/cgroup.procs`,
    );
    await powerOff();
    expect(readFileSync(attic).includes(MARK.slice(0, 64))).toBe(false);
    const { shell } = await boot("tpm-a");
    const node = await until("in service with its volumes", (each) => isActive(each) && each.phase === "in-service");
    expect([stateOf(node, "vault"), stateOf(node, "attic")]).toEqual(["open", "open"]);
    expect(await shell.must("cat /srv/attic/mark")).toBe(MARK);
    const before = await shell.must("journalctl -b -1 -o cat -u 'systemd-cryptsetup@*' -u corium-pods.service");
    expect(before).toContain("pods did not end");
    expect(before.match(/systemd-cryptsetup@\S+: Deactivated successfully/g)).toHaveLength(2);
    expect(before).not.toMatch(/fail|busy/i);
  }, 1_800_000);

  test("B173: the TPM says no: the node boots on and names the volume; its recovery key opens it and binds it anew", async () => {
    await powerOff();
    const { shell } = await boot("tpm-b");
    const locked = await until("said to be locked", (node) => stateOf(node, "vault") === "locked");
    expect(stateOf(locked, "attic")).toBe("open");
    expect(locked.health.checks).toContainEqual({
      name: "volume vault",
      ok: false,
      message: "locked; `cctl luks unlock NODE vault` opens it",
    });
    // The boot ends. A unit that failed makes it degraded, one whose device came too late does not.
    const settled = "systemctl is-system-running --wait";
    expect((await shell.run(settled, 900_000)).stdout).toMatch(/^(degraded|running)\n$/);
    expect((await unitRun(shell, K0S_UNIT)).activeState).not.toBe("active");
    expect((await shell.run("ls /var/lib/k0s")).stdout).toBe("");
    const wrong = await operator.cctl(["luks", "unlock", "node1", "vault"], 300_000, "not the key\n");
    expect([wrong.exitCode, wrong.stdout]).toEqual([1, ""]);
    expect(wrong.stderr).toContain("the key does not open volume vault");
    const opened = await operator.cctl(["luks", "unlock", "node1", "vault"], 300_000, `${recoveryKey}\n`);
    expect(opened.stderr).toBe("");
    expect(opened.stdout).toBe("volume vault is open\nthe TPM opens it again from the next boot on\n");
    const node = await until("k0s runs", isActive);
    expect(stateOf(node, "vault")).toBe("open");
    expect((await shell.run("ls /run/corium | grep luks")).stdout).toBe("");
  }, 1_800_000);

  test("and from then on that TPM opens it", async () => {
    await powerOff();
    await boot("tpm-b");
    const node = await until("in service with its volumes", isActive);
    expect([stateOf(node, "vault"), stateOf(node, "attic")]).toEqual(["open", "open"]);
  }, 1_200_000);
});
