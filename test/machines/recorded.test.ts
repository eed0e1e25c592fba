import { describe, expect, test } from "bun:test";
import { readInventory } from "../../disks/driver.ts";
import type { Disk } from "../../kit/disk.ts";
import type { Exec } from "../../kit/ports.ts";
import { machine, machineNames, recordedMachine } from "./machines.ts";
import { replay, replayHost } from "./recorded.ts";

const serial = (name: string, wanted: string): Disk => {
  const found = machine(name).disks.filter((disk) => disk.identity.serial === wanted);
  const [disk] = found;
  if (disk === undefined || found.length > 1) throw new Error(`${name}: ${found.length} disks ${wanted}`);
  return disk;
};

describe("recorded machines", () => {
  test("each says what is odd about it and where it comes from", () => {
    const silent = machineNames.filter((name) => {
      const { about, origin } = recordedMachine(name);
      return !(about.length > 10 && origin.length > 10);
    });
    expect(silent).toEqual([]);
  });

  test("firmware RAID metadata that kill mdadm left a disk that could never be wiped; of md's own the doubt stays", async () => {
    const recorded = recordedMachine("old-ext4-on-a-member");
    const dying = (type: string) =>
      replay({
        ...recorded,
        wipefs: { ...recorded.wipefs, "/dev/vdb": [{ offset: "0x3fffc00", type }] },
        examineExport: { "/dev/vdb": { signal: "SIGABRT" } },
      });
    expect((await dying("isw_raid_member")).unknown).toEqual([]);
    expect((await dying("linux_raid_member")).unknown).toEqual(["/dev/vdb: mdadm failed: killed by SIGABRT"]);
    expect(serial("old-ext4-on-a-member", "A").signatures).toEqual([]);
  });

  test("a box of three hundred disks had a thousand programs started at once", async () => {
    const host = replayHost(recordedMachine("three-hundred-disks"));
    let [running, most] = [0, 0];
    const exec: Exec = async (request) => {
      most = Math.max(most, (running += 1));
      try {
        return await host.exec(request);
      } finally {
        running -= 1;
      }
    };
    const read = await readInventory({ ...host, exec }, { mode: "disk" });
    expect(read.ok && read.value.disks.length).toBe(300);
    expect(most).toBeGreaterThan(8);
    expect(most).toBeLessThan(64);
  });
});
