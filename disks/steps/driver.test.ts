import { describe, expect, test } from "bun:test";
import type { AppError } from "../../kit/app-error.ts";
import { formatError } from "../../kit/app-error.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { StepContext } from "../../kit/step.ts";
import { mountStep } from "../../provision/mount-plan.ts";
import type { FakeHost } from "../../test/support/fake-host.ts";
import { fakeHost } from "../../test/support/fake-host.ts";
import type { DiskWipeStep } from "../model.ts";
import { confirmDevices, diskExecutors } from "./driver.ts";

const value = <T>(result: Result<T, AppError>): T => {
  if (!result.ok) throw new Error(formatError(result.error));
  return result.value;
};
const context = (host: FakeHost): StepContext => ({ host, secrets: new Map(), report: () => {} });
const programs = (host: FakeHost): string[] =>
  host.calls.filter((call) => call.startsWith("exec ")).map((call) => call.slice(5));

const block = (path: string, more: object = {}): object => ({
  path,
  kname: path.replace("/dev/", ""),
  type: "disk",
  size: 1000,
  mountpoints: [null],
  ...more,
});

describe("disk:wipe", () => {
  const step: DiskWipeStep = {
    kind: "disk:wipe",
    id: "raid:data:wipe:0",
    title: "wipe",
    device: { path: "/dev/sda", identity: { serial: "A", sizeBytes: 1000 } },
    destroys: [],
  };

  /** sda1 carries md0, on which vg0-root stands; `point` mounts that. Stopping a holder takes it out of sysfs. */
  function machine(point: string | null = null): FakeHost {
    const signatures = new Map([
      ["/dev/sda", "gpt"],
      ["/dev/sda1", "linux_raid_member"],
    ]);
    const host = fakeHost({
      files: {
        "/sys/class/block/sda1/holders/md0": "",
        "/sys/class/block/md0/holders/dm-0": "",
        "/sys/class/block/md0/md/array_state": "clean",
        "/sys/class/block/dm-0/dm/name": "vg0-root\n",
      },
      programs: {
        udevadm: () => "",
        sync: () => "",
        blkid: () => ({ exitCode: 2 }),
        wipefs: ({ argv }, fake) => {
          const path = argv.at(-1) ?? "";
          if (argv[1] === "-J") {
            const type = signatures.get(path);
            return type === undefined ? "" : JSON.stringify({ signatures: [{ type }] });
          }
          if (path === "/dev/sda1" && fake.node("/sys/class/block/sda1/holders/md0") !== undefined)
            return {
              exitCode: 1,
              stderr: "wipefs: error: /dev/sda1: probing initialization failed: Device or resource busy",
            };
          signatures.delete(path);
          return "";
        },
        mdadm: ({ argv }, fake) => {
          if (argv[1] !== "--stop") return "";
          if (fake.node("/sys/class/block/md0/holders/dm-0") !== undefined)
            return { exitCode: 1, stderr: "mdadm: Cannot get exclusive access" };
          for (const path of ["sda1/holders/md0", "md0/md/array_state"]) fake.drop(`/sys/class/block/${path}`);
          return "";
        },
        dmsetup: (_request, fake) => {
          for (const path of ["md0/holders/dm-0", "dm-0/dm/name"]) fake.drop(`/sys/class/block/${path}`);
          return "";
        },
        lsblk: (_request, fake) => {
          const isUp = (path: string): boolean => fake.node(`/sys/class/block/${path}`) !== undefined;
          const mapping = { ...block("/dev/mapper/vg0-root"), kname: "dm-0", type: "lvm", mountpoints: [point] };
          const array = block("/dev/md0", { type: "raid1", children: isUp("md0/holders/dm-0") ? [mapping] : [] });
          const part = block("/dev/sda1", {
            type: "part",
            partn: 1,
            children: isUp("sda1/holders/md0") ? [array] : [],
          });
          return JSON.stringify({
            blockdevices: [block("/dev/sda", { serial: "A", children: signatures.has("/dev/sda") ? [part] : [] })],
          });
        },
      },
    });
    return host;
  }

  test("B012: volume, then array, then partition, then disk; each only when nothing stands on it", async () => {
    const host = machine();
    const { "disk:wipe": executor } = diskExecutors;
    expect(value(await executor.check(step, context(host)))).toBe("todo");
    value(await executor.run(step, context(host)));
    expect(programs(host).filter((call) => /^(dmsetup|mdadm|wipefs --lock)/.test(call))).toEqual([
      "dmsetup remove --retry vg0-root",
      "mdadm --stop /dev/md0",
      "mdadm --zero-superblock /dev/sda1",
      "wipefs --lock=yes -a /dev/sda1",
      "wipefs --lock=yes -a /dev/sda",
    ]);
    expect(value(await executor.check(step, context(host)))).toBe("done");
  });

  test("what is mounted since it was planned is left alone, and so is everything below it", async () => {
    const host = machine("/mnt/x");
    const ran = await diskExecutors["disk:wipe"].run(step, context(host));
    expect(ran).toMatchObject({ ok: false, error: { code: "disk-busy" } });
    expect(programs(host).filter((call) => /^(dmsetup|mdadm|wipefs --lock)/.test(call))).toEqual([]);
  });

  test("kernel names have moved: another serial behind the path stops the step before anything", async () => {
    const host = machine();
    const other = { path: "/dev/sda", identity: { serial: "B", sizeBytes: 1000 } };
    expect(await diskExecutors["disk:wipe"].run({ ...step, device: other }, context(host))).toMatchObject({
      ok: false,
      error: { code: "disk-changed" },
    });
    expect(
      await confirmDevices(host, [{ path: "/dev/sdz", identity: { serial: "A", sizeBytes: 1000 } }]),
    ).toMatchObject({
      ok: false,
      error: { code: "disk-gone" },
    });
    expect(programs(host).filter((call) => /^(dmsetup|mdadm|wipefs)/.test(call))).toEqual([]);
  });
});

describe("disk:mount", () => {
  const uuid = "0e9554b0-c265-4354-9dd2-04caa654d74e";
  const order = { id: "mount:data", name: "data", uuid, filesystem: "ext4", role: "single" } as const;
  const { "disk:mount": executor } = diskExecutors;

  /** Starting the unit mounts it. */
  function machine(point: string, unit: string): FakeHost {
    let mounted: string | undefined;
    return fakeHost({
      programs: {
        udevadm: () => "",
        chattr: () => "",
        findmnt: () =>
          JSON.stringify({
            filesystems: mounted === undefined ? [] : [{ target: mounted, source: "/dev/md127", uuid }],
          }),
      },
      units: { [unit]: { onStart: () => ok(void (mounted = point)) } },
    });
  }

  test("k0s waits for it, it is kept over boots, and a second run changes nothing", async () => {
    const step = mountStep({ ...order, point: "/var/lib/k0s" });
    const host = machine(step.point, step.unit);
    expect(value(await executor.check(step, context(host)))).toBe("todo");
    value(await executor.run(step, context(host)));
    expect(value(await executor.check(step, context(host)))).toBe("done");
    expect(programs(host)).not.toContain("chattr +i /var/lib/k0s");
    expect(host.paths("/var/lib/corium/etc").map((path) => path.slice("/var/lib/corium/etc".length))).toEqual([
      "/systemd/system/k0scontroller.service.d/50-corium-var-lib-k0s.conf",
      "/systemd/system/local-fs.target.wants/var-lib-k0s.mount",
      "/systemd/system/var-lib-k0s.mount",
    ]);
    const writes = (): number => host.calls.filter((call) => call.startsWith("files.write")).length;
    const before = writes();
    value(await executor.run(step, context(host)));
    expect(writes()).toBe(before);
  });

  test("elsewhere the empty point refuses writes while nothing is mounted", async () => {
    const step = mountStep({ ...order, point: "/srv/data" });
    const host = machine(step.point, step.unit);
    value(await executor.run(step, context(host)));
    expect(programs(host)).toContain("chattr +i /srv/data");
  });

  test("a point with something in it is refused: the mount would hide it", async () => {
    const step = mountStep({ ...order, point: "/srv/data" });
    const host = machine(step.point, step.unit);
    host.put("/srv/data/photos", "x");
    expect(await executor.run(step, context(host))).toMatchObject({ ok: false, error: { code: "point-not-empty" } });
    expect(host.calls.filter((call) => call.startsWith("systemd.start"))).toEqual([]);
  });

  test("something else mounted there is refused; a mount that fails brings its journal along", async () => {
    const step = mountStep({ ...order, point: "/srv/data" });
    const taken = machine(step.point, step.unit);
    taken.programs.set("findmnt", () =>
      JSON.stringify({ filesystems: [{ target: "/srv/data", source: "/dev/sdx", uuid: "other" }] }),
    );
    expect(await executor.run(step, context(taken))).toMatchObject({ ok: false, error: { code: "point-taken" } });
    const broken = machine(step.point, step.unit);
    broken.unitTable.set(step.unit, {
      ...(broken.unitTable.get(step.unit) ?? {
        activeState: "",
        subState: "",
        loadState: "loaded",
        isEnabled: false,
        restarts: 0,
        result: "",
        mainPid: 0,
      }),
      journal: ["wrong fs type"],
      onStart: () => ({ ok: false, error: { code: "unit-failed", message: "it failed" } }),
    });
    expect(await executor.run(step, context(broken))).toMatchObject({
      ok: false,
      error: { code: "mount-failed", details: ["wrong fs type"] },
    });
  });
});
