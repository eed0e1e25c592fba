// budget: 3000 s
/**
 * Arrays of every level: made, pulled apart and mended while the node serves. One machine; each test goes on where the
 * last one ended. What comes after a cold start is in raid.vm.test.ts.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { arrayMachine, isWhole, stateOf } from "../qemu/harness/arrays.ts";
import { testImage } from "../qemu/harness/image.ts";
import { openOperator } from "../qemu/harness/node.ts";

const operator = await openOperator();
const machine = await arrayMachine(await testImage(), operator);
afterAll(async () => {
  await machine.dispose();
  operator.dispose();
});
const { document, fresh, data } = machine;
const LIMIT_MS = 2_400_000;

describe("arrays", () => {
  test(
    "levels 0, 1, 5, 6 and 10 are made of disks with 512 and with 4096 bytes to a sector",
    async () => {
      const { shell } = await machine.start("raid", [...data, fresh]);
      await machine.enter(document);
      const arrays = (await operator.status(machine.node))?.storage.arrays ?? [];
      expect(arrays.map(({ name, level, expected }) => `${name} ${level} ${expected}`).toSorted()).toEqual([
        "double raid6 4",
        "mirror raid1 2",
        "parity raid5 3",
        "stripe raid0 2",
        "tens raid10 4",
      ]);
      expect(arrays.find(({ name }) => name === "mirror")?.members).toMatchObject([
        { serial: "mirror-a", role: 0, state: "active" },
        { serial: "mirror-b", role: 1, state: "active" },
        { serial: "mirror-spare", state: "spare" },
      ]);
      const details = await shell.must(`for array in /dev/md/*; do mdadm --detail $array; done`, 120_000);
      expect(details.match(/Version : 1\.2/g)).toHaveLength(5);
      expect(details.match(/Name : any:/g)).toHaveLength(5);
      expect(details.match(/Intent Bitmap : Internal/g)).toHaveLength(4);
      await machine.write();
    },
    LIMIT_MS,
  );

  test(
    "an idle mirror's disk is pulled: the spare takes its place, and the returned disk becomes the spare",
    async () => {
      // Slow enough to be seen at it.
      const limit = "/proc/sys/dev/raid/speed_limit_max";
      const fast = await machine.vm.shell.must(`cat ${limit}; echo 4000 >${limit}`);
      await machine.vm.pull("mirror-b");
      await machine.waitEvent("array-member-lost", /array mirror: member serial mirror-b \(\S+\)/);
      await machine.waitEvent("array-degraded", /array mirror is degraded: 1 of 2/);
      await machine.waitEvent("array-spare-used", /array mirror: spare serial mirror-spare/);
      await machine.waitEvent("array-rebuilding", /array mirror is being rebuilt: \d+ %/);
      await machine.waitEvent("array-recovered", /array mirror is whole again/);
      await machine.vm.shell.must(`echo ${fast} >${limit}`);
      const short = await machine.waitArray("mirror", isWhole);
      expect([stateOf(short, "mirror-spare"), stateOf(short, "mirror-b")]).toEqual(["active", "missing"]);
      await machine.vm.plug("mirror-b");
      await machine.waitArray("mirror", (each) => isWhole(each) && stateOf(each, "mirror-b") === "spare");
      await machine.waitEvent("array-member-added", /array mirror: serial mirror-b/);
    },
    LIMIT_MS,
  );

  test(
    "a level without a spare runs degraded, says so, and takes the returned disk back",
    async () => {
      await machine.vm.pull("parity-b");
      const degraded = await machine.waitArray("parity", ({ state }) => state === "degraded");
      expect(degraded).toMatchObject({ active: 2, expected: 3 });
      expect(await operator.must(["status", machine.node])).toMatch(/array parity: degraded, 2 of 3 members/);
      const metrics = await operator.metrics(machine.vm);
      expect(metrics).toContain('corium_array_state{array="parity",level="raid5",state="degraded"} 1');
      expect(metrics).toContain('corium_array_members_active{array="parity"} 2');
      await machine.vm.shell.must("head -c 4000000 /dev/urandom >/srv/parity/more; sync", 120_000);
      await machine.vm.console.expect(/array: parity raid5 degraded 2\/3/, 600_000);
      await machine.vm.plug("parity-b");
      await machine.waitArray("parity", (each) => isWhole(each) && stateOf(each, "parity-b") === "active");
      await machine.waitEvent("array-recovered", /array parity is whole again/);
      await machine.expectContent();
      expect((await machine.events()).filter(({ kind }) => kind === "array-failed")).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "a working disk is replaced without a moment of less, and the document goes on to be true",
    async () => {
      const replace = (next: string, ...more: readonly string[]): readonly string[] => {
        return ["disk", "replace", machine.node, "parity", "--old", "parity-c", "--new", next, "--yes", ...more];
      };
      const wrong = await operator.cctl(replace("mirror-a", "--wipe"), 300_000);
      expect([wrong.exitCode, wrong.stdout]).toEqual([1, ""]);
      expect(wrong.stderr).toContain("is in use by");
      const large = await operator.cctl(replace("tens-a", "--wipe"), 300_000);
      expect(large.stderr).toContain("take a disk with sectors of the same size");
      const dry = await operator.must(replace("fresh", "--dry-run"), 300_000);
      expect(dry).toMatch(/add disk \/dev\/\S+ \(.*serial fresh.*\) to array parity/);
      const before = await machine.waitArray("parity", isWhole);
      expect(before.members?.map(({ serial }) => serial)).not.toContain("fresh");

      const saidBefore = (await machine.events()).length;
      await operator.must(replace("fresh"), 1_200_000);
      const parity = await machine.waitArray("parity", isWhole);
      expect(parity.members?.map(({ serial, state }) => `${serial} ${state}`).toSorted()).toEqual([
        "fresh active",
        "parity-a active",
        "parity-b active",
      ]);
      const said = (await machine.events()).slice(saidBefore);
      expect(said.find(({ kind }) => kind === "disk-replaced")?.message).toContain("serial fresh");
      expect(said.filter(({ kind }) => kind === "array-degraded" || kind === "array-member-lost")).toEqual([]);
      // Blank again, and never taken back.
      const old = await machine.vm.shell.run("mdadm --examine $(readlink -f /dev/disk/by-id/*parity-c)");
      expect(old.stderr).toContain("No md superblock");
      const file = join(operator.directory, "again.yaml");
      for (const text of [document, document.replace("serial: parity-c", "serial: fresh")]) {
        writeFileSync(file, text);
        const applied = await operator.must(["apply", machine.node, "--file", file, "--yes"], 300_000);
        expect(applied).toContain("unchanged");
      }
      await machine.expectContent();
    },
    LIMIT_MS,
  );
});
