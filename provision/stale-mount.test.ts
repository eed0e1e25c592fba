/** A document corrected before the first boot was over: what the one before it had mounted. */
import { describe, expect, test } from "bun:test";
import { diskExecutors } from "../disks/steps/driver.ts";
import type { DiskMountStep } from "../disks/model.ts";
import type { AppError } from "../kit/app-error.ts";
import { formatError } from "../kit/app-error.ts";
import type { Disk, Inventory } from "../kit/disk.ts";
import type { Result } from "../kit/result.ts";
import type { StepContext } from "../kit/step.ts";
import { countedUuids, machine, plainDisk, storageDocument } from "../test/machines/machines.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { MachineDied } from "../test/support/fake-call.ts";
import { mountStep, readWrittenMount } from "./mount-plan.ts";
import type { StorageInput, StoragePlan } from "./storage.ts";
import { planStorage } from "./storage.ts";
import { readWritten } from "./storage/driver.ts";

const uuid = "0e9554b0-c265-4354-9dd2-04caa654d74e";
const mountOf = (point: string): DiskMountStep =>
  mountStep({ id: "mount:plain", name: "plain", point, uuid, filesystem: "ext4", role: "single" });
const writtenAt = (point: string) => ({ unit: mountOf(point).unit, point, uuid });

/** Disk A has the filesystem that was made for it, mounted at `point`. */
function mountedAt(point: string): Inventory {
  const blank = machine("blank-pair");
  const made = (disk: Disk): Disk => ({
    ...disk,
    signatures: [{ type: "ext4", device: disk.path, where: "the whole disk at 0x438", uuid, label: "corium-plain" }],
    users: [{ kind: "mount", name: point, isBusy: true }],
  });
  return { ...blank, disks: blank.disks.map((disk) => (disk.identity.serial === "A" ? made(disk) : disk)) };
}

const plan = (document: StorageInput["document"], point: string, more: Partial<StorageInput> = {}): StoragePlan =>
  planStorage({
    document,
    inventory: mountedAt(point),
    owned: [],
    intents: [],
    uuid: countedUuids(),
    written: [writtenAt(point)],
    ...more,
  });
const ids = ({ steps }: StoragePlan): string[] => steps.map(({ id }) => id);
const codes = ({ findings }: StoragePlan): string[] =>
  findings.flatMap(({ severity, code, path }) => (severity === "error" ? [`${code} ${path}`] : []));

describe("the plan", () => {
  test("the mount point was corrected: the filesystem stayed mounted at the old one as well", () => {
    const moved = plan(storageDocument({ disks: [plainDisk({ mountPoint: "/srv/new" })] }), "/srv/old");
    expect(ids(moved)).toEqual(["unmount:srv-old", "mount:plain"]);
    expect(ids(plan(storageDocument({ disks: [plainDisk({ mountPoint: "/srv/old" })] }), "/srv/old"))).toEqual([
      "mount:plain",
    ]);
  });

  test("the disk was corrected: something else is mounted there, said each run, and nobody could free it", () => {
    const other = storageDocument({ disks: [plainDisk({ device: { serial: "B" }, mountPoint: "/srv/old" })] });
    expect(ids(plan(other, "/srv/old"))).toEqual(["unmount:srv-old", "disk:plain:filesystem", "mount:plain"]);
  });

  test("a disk to be given up was in use by the mount that an earlier document had made", () => {
    const again = storageDocument({ disks: [plainDisk({ mountPoint: "/srv/old", wipe: true })] });
    const lost = plan(again, "/srv/old", {
      ownLossSinceMs: 5,
      owned: [{ kind: "disk", name: "plain", uuid, disks: [{ ...mountedAt("").disks[1]?.identity, sizeBytes: 1 }] }],
    });
    expect(codes(lost)).toEqual([]);
    expect(ids(lost)).toEqual(["unmount:srv-old", "disk:plain:wipe", "disk:plain:filesystem", "mount:plain"]);
    // A mount that no document made is nobody's to take away.
    expect(codes(plan(again, "/srv/old", { ownLossSinceMs: 5, written: [] }))).toEqual(["in-use disks[0].device"]);
  });

  test("inner mounts go before outer ones", () => {
    const written = [writtenAt("/srv/a"), writtenAt("/srv/a/b")];
    expect(ids(plan(storageDocument({}), "/srv/a", { written }))).toEqual(["unmount:srv-a-b", "unmount:srv-a"]);
  });

  test("what k0s was started on is not taken from under it", () => {
    const without = storageDocument({});
    expect(ids(plan(without, "/var/lib/k0s"))).toEqual(["unmount:var-lib-k0s"]);
    expect(codes(plan(without, "/var/lib/k0s", { hasK0sRecord: true }))).toEqual(["k0s-mount "]);
    expect(codes(plan(without, "/srv/old", { hasK0sRecord: true }))).toEqual([]);
  });
});

describe("the step", () => {
  const value = <T>(result: Result<T, AppError>): T => {
    if (!result.ok) throw new Error(formatError(result.error));
    return result.value;
  };
  const context = (host: FakeHost): StepContext => ({ host, secrets: new Map(), report: () => {} });
  const step = mountOf("/var/lib/k0s/my data");

  /** As the mount step leaves it; stopping the unit unmounts unless somebody is in there. */
  function mounted(isBusy = false, freed: string[] = []): FakeHost {
    let isMounted = true;
    // Their kept copies: what is taken away stays away over a boot.
    const kept = (path: string): string => path.replace("/etc/", "/var/lib/corium/etc/");
    const host = fakeHost({
      files: {
        ...Object.fromEntries(step.files.map(({ path, content }) => [kept(path), content])),
        [kept(step.wantsLink)]: "",
        "/etc/systemd/system/stranger.mount": "[Mount]\nWhat=/dev/disk/by-uuid/x\nWhere=/srv/stranger\n",
      },
      programs: {
        chattr: ({ argv }) => {
          freed.push(argv.slice(1).join(" "));
          return "";
        },
        findmnt: () =>
          JSON.stringify({ filesystems: isMounted ? [{ target: step.point, source: "/dev/vdb", uuid }] : [] }),
      },
      units: { [step.unit]: { onStop: () => void (isMounted = isBusy), activeState: "active" } },
    });
    host.boot();
    return host;
  }

  async function planned(host: FakeHost) {
    const written = await readWritten(host);
    return planStorage({
      document: storageDocument({}),
      inventory: machine("blank-pair"),
      owned: [],
      intents: [],
      uuid: countedUuids(),
      written,
    }).steps;
  }

  async function carryOut(host: FakeHost): Promise<void> {
    for (const each of await planned(host)) {
      if (each.kind !== "disk:unmount") throw new Error(`${each.id} was not to be planned`);
      const executor = diskExecutors["disk:unmount"];
      if (value(await executor.check(each, context(host))) === "done") continue;
      value(await executor.run(each, context(host)));
      expect(value(await executor.check(each, context(host)))).toBe("done");
    }
  }

  test("takes unit, link and drop-in away, and nothing that is somebody else's", async () => {
    const host = mounted();
    const [text] = step.files.map(({ content }) => content);
    expect(readWrittenMount(step.unit, text ?? "")).toEqual(writtenAt("/var/lib/k0s/my data"));
    await carryOut(host);
    expect(host.paths("/etc/systemd/system")).toEqual(["/etc/systemd/system/stranger.mount"]);
    expect(await planned(host)).toEqual([]);
  });

  test("power lost at any call: the next run takes away the rest", async () => {
    for (let at = 1; ; at += 1) {
      const freed: string[] = [];
      const host = mounted(false, freed);
      host.dieAt(at);
      let died = false;
      try {
        await carryOut(host);
      } catch (thrown) {
        if (!(thrown instanceof MachineDied)) throw thrown;
        died = true;
      }
      if (!died) break;
      host.crash();
      await carryOut(host);
      expect(host.paths("/etc/systemd/system")).toEqual(["/etc/systemd/system/stranger.mount"]);
      // Once the unit is gone nobody knows of the folder any more: it stayed immutable for ever.
      expect(freed).toContain(`-i ${step.point}`);
    }
  });

  test("in use it is left whole, and says so", async () => {
    const host = mounted(true);
    const before = host.paths("/etc/systemd/system");
    const [first] = await planned(host);
    if (first?.kind !== "disk:unmount") throw new Error("nothing was planned");
    expect(await diskExecutors["disk:unmount"].run(first, context(host))).toMatchObject({
      ok: false,
      error: { code: "mount-busy", message: "/var/lib/k0s/my data is still mounted" },
    });
    expect(host.paths("/etc/systemd/system")).toEqual(before);
  });
});
