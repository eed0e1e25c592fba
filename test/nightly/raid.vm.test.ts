// budget: 5400 s
/**
 * Arrays of every level over boots: started cold with disks missing and all names changed, and taken over by a second
 * installation with its data. What happens while the node serves is in array-life.vm.test.ts.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { ARRAYS, arrayMachine, isWhole } from "../qemu/harness/arrays.ts";
import { testImage } from "../qemu/harness/image.ts";
import { openOperator } from "../qemu/harness/node.ts";

const operator = await openOperator();
const machine = await arrayMachine(await testImage(), operator);
afterAll(async () => {
  await machine.dispose();
  operator.dispose();
});
const { document, data } = machine;
const LIMIT_MS = 2_400_000;
const NAMES = "lsblk -dno NAME,SERIAL | sort -k 2";

describe("arrays over boots", () => {
  test(
    "B029, B030, B031: started cold with disks missing and all names changed, each is there, degraded and said",
    async () => {
      const first = await machine.start("raid-first", data);
      await machine.enter(document);
      await machine.write();
      const names = await first.shell.must(NAMES);
      await machine.switchOff();

      const gone = ["mirror-b", "mirror-spare", "parity-c", "double-b", "tens-c"];
      const left = data.filter(({ serial }) => !gone.includes(serial)).toReversed();
      const vm = await machine.start("raid-cold", left);
      expect(await vm.shell.must(NAMES)).not.toBe(names);
      await vm.console.expect(/array: double raid6 degraded 3\/4/, 600_000);
      const short = { mirror: [1, 2], parity: [2, 3], double: [3, 4], tens: [3, 4] } as const;
      for (const [name, [active, expected]] of Object.entries(short)) {
        expect(await machine.waitArray(name, ({ state }) => state === "degraded")).toMatchObject({ active, expected });
        const says = `array ${name} is degraded: ${active} of ${expected} members, without serial`;
        await machine.waitEvent("array-degraded", new RegExp(says));
      }
      await machine.waitArray("stripe", isWhole);
      await machine.expectContent();
      const log = await vm.shell.must("journalctl --boot --unit corium-arrays --output cat");
      expect(log).toContain("array double is DEGRADED: started with 3 of 4 members");
      expect(log).toContain("array mirror is DEGRADED: started with 1 of 3 members");
    },
    2 * LIMIT_MS,
  );

  test(
    "a second installation takes all of it over, data and all, although the document says wipe: true",
    async () => {
      await machine.switchOff();
      await machine.start("raid-again", data, "second");
      // Those that were left out before come back by themselves.
      await machine.enter(document);
      await machine.expectContent();
      const isComplete = ({ members = [] }: { readonly members?: readonly { readonly state: string }[] }): boolean =>
        members.every(({ state }) => state === "active" || state === "spare");
      for (const name of ARRAYS) await machine.waitArray(name, (each) => isWhole(each) && isComplete(each));
      await machine.expectContent();
    },
    LIMIT_MS,
  );
});
