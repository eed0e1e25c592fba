import { expect, test } from "bun:test";
import type { Disk } from "../kit/disk.ts";
import type { BootFacts } from "../kit/paths.ts";
import { ok } from "../kit/result.ts";
import { memoryState } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { layout, mirrorDisk, systemDisk } from "../test/support/mirror-disks.ts";
import { reportOtherSystems } from "./other-systems.ts";

const uuidOf = (role: string): string => layout.partitions.find((each) => each.role === role)?.partUuid ?? "";
const partUuids = { esp: "", boot: "", root: uuidOf("rootA"), state: uuidOf("state"), data: uuidOf("data") };
const own = systemDisk("own");
const copy = { ...systemDisk("copy"), isSystemDisk: false };
const other: Disk = {
  ...copy,
  identity: { ...copy.identity, serial: "other" },
  partitions: copy.partitions.map((each) => ({ ...each, partUuid: `9${each.partUuid?.slice(1)}` })),
};

async function said(disks: readonly Disk[], boot: BootFacts = { mode: "disk", partUuids }): Promise<readonly string[]> {
  const state = memoryState();
  const look = {
    host: fakeHost(),
    state,
    boot,
    inventory: async () => ok({ disks, arrays: [], unknown: [] }),
    say: () => undefined,
    signal: new AbortController().signal,
  };
  await reportOtherSystems(look);
  // Once per boot.
  await reportOtherSystems(look);
  return state.events.last().map(({ message }) => message);
}

test("a second Corium disk in the box is said, and so is a copy of the own one", async () => {
  expect(await said([own, mirrorDisk("data"), other])).toEqual([
    "disk /dev/copy (no model, serial other, 32 GiB) holds another installed Corium; nothing of it is used",
  ]);
  const [warning = ""] = await said([own, copy]);
  expect(warning).toContain("serial copy, 32 GiB) has the same partitions as the disk of this system");
});

test("the own disks and data disks are nothing to say; a live system says nothing", async () => {
  expect(await said([own, systemDisk("second-half"), mirrorDisk("data")])).toEqual([]);
  expect(await said([own, other], { mode: "live" })).toEqual([]);
});
