import { describe, expect, test } from "bun:test";
import { formatError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import type { AppError } from "../kit/app-error.ts";
import type { StepBase, StepContext, StepExecutor } from "../kit/step.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { assembleArgv, createArgv, mdUuid } from "./argv.ts";
import { raidExecutors } from "./driver.ts";
import type { RaidCreateStep } from "./model.ts";
import { assembleStep, configStep } from "./plan.ts";

const uuid = "00000000:00004000:80000000:00000001";

const step: RaidCreateStep = {
  kind: "raid:create",
  id: "raid:data:create",
  title: "create",
  name: "data",
  level: 1,
  uuid,
  members: ["/dev/vdb", "/dev/vdc"].map((path) => ({ path, identity: { serial: path, sizeBytes: 1 } })),
  spares: [],
  destroys: [],
};

/** The kernel and mdadm, as far as a member's superblock and one running array go. */
function machine(): FakeHost & { superblocks: Map<string, string> } {
  const superblocks = new Map<string, string>();
  const stop = (fake: FakeHost): void => {
    fake.put("/proc/mdstat", "Personalities :\nunused devices: <none>\n");
    fake.drop(`/dev/disk/by-id/md-uuid-${uuid}`);
  };
  const start = (fake: FakeHost, members: readonly string[]): void => {
    const list = members.map((path, at) => `${path.replace("/dev/", "")}[${at}]`).join(" ");
    fake.put("/proc/mdstat", `md127 : active (auto-read-only) raid1 ${list}\n      1 blocks super 1.2 [2/2] [UU]\n`);
    fake.put(`/dev/disk/by-id/md-uuid-${uuid}`, "");
  };
  const host = fakeHost({
    programs: {
      mdadm: ({ argv }, fake) => {
        const paths = argv.filter((each) => each.startsWith("/dev/vd"));
        const [path = ""] = paths;
        if (argv[1] === "--examine") {
          const found = superblocks.get(path);
          return found === undefined ? { exitCode: 1 } : `MD_LEVEL=raid1\nMD_UUID=${found}\n`;
        }
        if (argv[1] === "--detail")
          return (fake.text("/proc/mdstat") ?? "").includes(" active") ? `MD_UUID=${uuid}\n` : "";
        if (argv[1] === "--stop") stop(fake);
        if (argv[1] === "--create") for (const each of paths) superblocks.set(each, uuid);
        if (argv[1] === "--create" || argv[1] === "--assemble") {
          if ((fake.text("/proc/mdstat") ?? "").includes("inactive")) return { exitCode: 1, stderr: "mdadm: busy\n" };
          start(fake, paths);
        }
        return "";
      },
    },
  });
  stop(host);
  return Object.assign(host, { superblocks });
}

const context = (host: FakeHost): StepContext => ({ host, secrets: new Map(), report: () => {} });
const value = <T>(result: Result<T, AppError>): T => {
  if (!result.ok) throw new Error(formatError(result.error));
  return result.value;
};
const bound = <S extends StepBase>(executor: StepExecutor<S>): Pick<StepExecutor<S>, "check" | "run"> => ({
  check: (...args) => executor.check(...args),
  run: (...args) => executor.run(...args),
});
const mdadm = (host: FakeHost): string[] =>
  host.calls.filter((call) => /^exec mdadm --(create|assemble|stop)/.test(call)).map((call) => call.slice(5));

describe("raid:create", () => {
  const { check, run } = bound(raidExecutors["raid:create"]);

  test("creates, and is done when it runs under its UUID and its link is there", async () => {
    const host = machine();
    expect(value(await check(step, context(host)))).toBe("todo");
    value(await run(step, context(host)));
    expect(value(await check(step, context(host)))).toBe("done");
    expect(mdadm(host)).toEqual([createArgv(step).join(" ")]);
    host.drop(`/dev/disk/by-id/md-uuid-${uuid}`);
    expect(value(await check(step, context(host)))).toBe("todo");
  });

  test("power lost after all superblocks were written: started, not created a second time", async () => {
    const host = machine();
    for (const { path } of step.members) host.superblocks.set(path, uuid);
    value(await run(step, context(host)));
    expect(mdadm(host)).toEqual([assembleArgv("data", uuid, ["/dev/vdb", "/dev/vdc"]).join(" ")]);
  });

  test("power lost between two superblocks: created anew under the same UUID", async () => {
    const host = machine();
    host.superblocks.set("/dev/vdb", uuid);
    value(await run(step, context(host)));
    expect(mdadm(host)).toEqual([createArgv(step).join(" ")]);
  });

  test("an incomplete array that holds its members is stopped first, somebody else's is not", async () => {
    const host = machine();
    host.superblocks.set("/dev/vdb", uuid);
    host.put("/proc/mdstat", "md127 : inactive vdb[0](S)\n      1 blocks super 1.2\n");
    value(await run(step, context(host)));
    expect(mdadm(host)[0]).toBe("mdadm --stop /dev/md127");
    const other = machine();
    other.superblocks.set("/dev/vdb", "1:2:3:4");
    other.put("/proc/mdstat", "md127 : inactive vdb[0](S)\n      1 blocks super 1.2\n");
    expect(await run(step, context(other))).toMatchObject({ ok: false, error: { code: "mdadm" } });
    expect(mdadm(other).filter((call) => call.includes("--stop"))).toEqual([]);
  });
});

describe("raid:assemble and raid:config", () => {
  test("a running array is left alone", async () => {
    const host = machine();
    const assemble = assembleStep("data", uuid, []);
    const { check, run } = bound(raidExecutors["raid:assemble"]);
    expect(value(await check(assemble, context(host)))).toBe("todo");
    value(await run(assemble, context(host)));
    expect(value(await check(assemble, context(host)))).toBe("done");
    value(await run(assemble, context(host)));
    expect(mdadm(host).length).toBe(1);
  });

  test("the config names the array by UUID and is kept over boots", async () => {
    const host = machine();
    const config = configStep("data", uuid, 2);
    const { check, run } = bound(raidExecutors["raid:config"]);
    expect(value(await check(config, context(host)))).toBe("todo");
    value(await run(config, context(host)));
    host.boot();
    expect(value(await check(config, context(host)))).toBe("done");
    expect(host.text("/etc/mdadm/mdadm.conf.d/corium-data.conf")).toContain(
      `# corium-members=2\nARRAY /dev/md/data metadata=1.2 UUID=${uuid}\n`,
    );
  });
});

describe("argv", () => {
  test("a mirror has a bitmap and nobody's name; a stripe can't have one; nothing assumes clean members", () => {
    expect(createArgv(step)).toEqual([
      "mdadm",
      "--create",
      "/dev/md/data",
      "--metadata=1.2",
      "--homehost=any",
      "--name=data",
      `--uuid=${uuid}`,
      "--level=1",
      "--raid-devices=2",
      "--bitmap=internal",
      "--run",
      "/dev/vdb",
      "/dev/vdc",
    ]);
    expect(createArgv({ ...step, level: 0 }).join(" ")).not.toMatch(/bitmap|assume-clean/);
    expect(createArgv({ ...step, spares: [{ path: "/dev/vdd", identity: { sizeBytes: 1 } }] }).slice(-5)).toEqual([
      "--spare-devices=1",
      "--run",
      "/dev/vdb",
      "/dev/vdc",
      "/dev/vdd",
    ]);
  });

  test("blkid's UUID and mdadm's are one", () => {
    expect(mdUuid("557c5b94-881b-e2de-bc5f-369b49d8761f")).toBe("557c5b94:881be2de:bc5f369b:49d8761f");
  });
});
