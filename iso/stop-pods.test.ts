/** The script that ends pods at power-off, on a folder that looks like their part of the cgroup tree. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// A shell script that sleeps.
setDefaultTimeout(60_000);

const tree = join(import.meta.dir, "rootfs/usr/lib");
const script = join(tree, "corium/stop-pods");
const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** One pod with one process, which does what the given shell does when it is asked to end. */
async function stop(onTerm: string | undefined): Promise<{ out: string; killed: string; isAlive: boolean }> {
  const root = mkdtempSync(join(tmpdir(), "corium-pods-"));
  folders.push(root);
  const group = join(root, "sys/fs/cgroup/kubepods.slice");
  const pod = join(group, "pod1");
  mkdirSync(pod, { recursive: true });
  const events = join(group, "cgroup.events");
  const kill = join(group, "cgroup.kill");
  writeFileSync(kill, "");
  writeFileSync(join(group, "cgroup.procs"), "");
  writeFileSync(events, `populated ${onTerm === undefined ? 0 : 1}\nfrozen 0\n`);
  const ready = join(root, "ready");
  const process =
    onTerm === undefined
      ? undefined
      : Bun.spawn([
          "sh",
          "-c",
          `trap '${onTerm}' TERM; echo >"$2"; while :; do sleep 0.05; done`,
          "pod",
          events,
          ready,
        ]);
  if (process !== undefined) {
    writeFileSync(join(pod, "cgroup.procs"), `${process.pid}\n`);
    while (!existsSync(ready)) await Bun.sleep(10);
  }
  const ran = Bun.spawn(["sh", script], {
    env: { PATH: "/usr/bin:/bin", CORIUM_ROOT: root, CORIUM_WAIT: "1" },
    stdout: "pipe",
    stderr: "inherit",
  });
  const [out, status] = await Promise.all([ran.stdout.text(), ran.exited]);
  expect(status).toBe(0);
  const isAlive = process !== undefined && process.exitCode === null;
  process?.kill("SIGKILL");
  await process?.exited;
  return { out, killed: readFileSync(kill, "utf8"), isAlive };
}

describe("stop-pods", () => {
  test("without pods there is nothing to do", async () => {
    expect(await stop(undefined)).toEqual({ out: "", killed: "", isAlive: false });
  });

  test("who ends when asked is not killed", async () => {
    const ended = await stop('echo "populated 0" >"$1"; exit 0');
    expect([ended.out, ended.killed]).toEqual(["", ""]);
  });

  test("who does not is killed with its whole group, after the time it was given", async () => {
    const stubborn = await stop(":");
    expect(stubborn).toEqual({ out: "pods did not end within 1 s and are killed\n", killed: "1\n", isAlive: true });
  });

  test("it stands between k0s and the volumes", () => {
    const unit = readFileSync(join(tree, "systemd/system/corium-pods.service"), "utf8");
    expect(unit).toMatch(/^Before=k0scontroller\.service k0sworker\.service$/m);
    expect(unit).toMatch(/^ExecStop=\/usr\/lib\/corium\/stop-pods$/m);
    expect(readFileSync(join(tree, "systemd/system-preset/00-corium.preset"), "utf8")).toContain(
      "enable corium-pods.service\n",
    );
  });
});
