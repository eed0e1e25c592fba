import { describe, expect, test } from "bun:test";
import type { OwnedStorage } from "../kit/disk.ts";
import { memoryState } from "../state/open.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { glance } from "../raid/watch/driver.ts";
import type { Memory } from "../raid/watch.ts";
import { round, watchArrays } from "./array-watch.ts";

const uuid = "557c5b94:881be2de:bc5f369b:49d8761f";
const owned: OwnedStorage = {
  kind: "raid",
  name: "data",
  uuid,
  disks: ["A", "B"].map((serial) => ({ serial, sizeBytes: 1 })),
};

/** Slot 1 of a mirror: its disk's name, or that nobody is there. */
interface Kernel {
  member: string | undefined;
  /** Serial by kernel name: the disks that are plugged in. */
  readonly disks: Map<string, string>;
  /** What mdadm was told to change. */
  readonly told: string[];
  reAdds: boolean;
}

/** The kernel's mirror and mdadm, as far as this goes. */
function machine(): { host: FakeHost; kernel: Kernel; show: () => void } {
  const kernel: Kernel = {
    member: "vdc",
    disks: new Map([
      ["vdb", "A"],
      ["vdc", "B"],
    ]),
    told: [],
    reAdds: true,
  };
  const show = (): void => {
    const second = kernel.member === undefined ? "" : ` ${kernel.member}[1]`;
    const [active, map] = kernel.member === undefined ? [1, "U_"] : [2, "UU"];
    host.put("/proc/mdstat", `md127 : active raid1${second} vdb[0]\n      1 blocks super 1.2 [2/${active}] [${map}]\n`);
    for (const name of ["vdb", "vdc", "vdd"]) {
      if (kernel.disks.has(name)) host.put(`/sys/class/block/${name}/diskseq`, `${name.charCodeAt(2)}\n`);
      else host.drop(`/sys/class/block/${name}/diskseq`);
    }
    for (const [slot, name] of [
      ["0", "vdb"],
      ["1", kernel.member],
    ] as const) {
      if (name === undefined) continue;
      host.put(`/sys/block/md127/md/dev-${name}/state`, "in_sync\n");
      host.put(`/sys/block/md127/md/dev-${name}/slot`, `${slot}\n`);
    }
  };
  const host = fakeHost({
    units: { "corium-arrays.service": { activeState: "active" } },
    programs: {
      mdadm: ({ argv }) => {
        if (argv.includes("--detail")) return `MD_UUID=${uuid}\nMD_DEVICES=2\n            Events : 34\n`;
        if (argv.includes("--examine"))
          return `MD_UUID=${uuid}\n         Events : 20\n   Device Role : Active device 1\n   Array State : AA ('A' == active)\n`;
        kernel.told.push(argv.slice(1).join(" "));
        if (argv.includes("detached")) kernel.member = undefined;
        if (argv.includes("--re-add") && !kernel.reAdds) return { exitCode: 1, stderr: "mdadm: not possible\n" };
        if (argv.includes("--re-add") || argv.includes("--add")) kernel.member = argv.at(-1)?.replace("/dev/", "");
        show();
        return "";
      },
    },
  });
  show();
  return { host, kernel, show };
}

function watched() {
  const { host, kernel, show } = machine();
  const state = memoryState();
  const watch = {
    host,
    state,
    memoryPath: "/run/corium/arrays.json",
    identities: async () => new Map([...kernel.disks].map(([name, serial]) => [name, { serial, sizeBytes: 1 }])),
    say: () => {},
  };
  let memory: Memory | undefined;
  const see = async (change: () => void = () => {}): Promise<readonly string[]> => {
    change();
    show();
    const before = state.events.last().length;
    memory = await round(watch, [owned], memory);
    return state.events
      .last()
      .slice(before)
      .map(({ kind }) => kind);
  };
  return { host, kernel, state, watch, see };
}

describe("arrays at run time", () => {
  test("a disk is pulled, comes back under another name, and is a member again", async () => {
    const { kernel, see } = watched();
    expect(await see()).toEqual([]);
    expect(await see(() => kernel.disks.delete("vdc"))).toEqual(["array-member-lost", "array-degraded"]);
    expect(kernel.told).toEqual(["/dev/md127 --fail detached --remove detached"]);
    expect(await see()).toEqual([]);
    expect(await see(() => kernel.disks.set("vdd", "B"))).toEqual([]);
    expect(kernel.told.slice(1)).toEqual(["/dev/md127 --re-add /dev/vdd"]);
    expect(await see()).toEqual(["array-member-added", "array-recovered"]);
    expect(await see()).toEqual([]);
  });

  test("too old to be taken back as it is: it comes as a new one", async () => {
    const { kernel, see } = watched();
    kernel.reAdds = false;
    await see();
    await see(() => kernel.disks.delete("vdc"));
    await see(() => kernel.disks.set("vdd", "B"));
    expect(kernel.told.slice(2)).toEqual(["--zero-superblock /dev/vdd", "/dev/md127 --add /dev/vdd"]);
  });

  test("a disk that is not recorded is not even opened, whatever it carries: a clone of a member", async () => {
    const { host, kernel, see } = watched();
    await see();
    await see(() => kernel.disks.delete("vdc"));
    await see(() => kernel.disks.set("vdd", "clone"));
    expect(kernel.told).toHaveLength(1);
    expect(host.calls.filter((call) => call.includes("/dev/vdd"))).toEqual([]);
  });

  test("the old disk of a replacement is neither missed nor taken back", async () => {
    const { kernel, state, see } = watched();
    await see();
    const [, old] = owned.disks;
    if (old === undefined) throw new Error("no disk");
    const id = state.replacements.begin({
      array: "data",
      device: "x",
      old,
      new: { serial: "C", sizeBytes: 1 },
      newLinks: [],
      isWipeAllowed: false,
      begunAtMs: 1,
    }).id;
    expect(await see(() => (kernel.member = undefined))).toEqual(["array-degraded"]);
    expect(kernel.told).toEqual([]);
    state.replacements.end(id, "failed", 2);
    await see();
    expect(kernel.told).toEqual(["/dev/md127 --re-add /dev/vdc"]);
  });

  test("while the boot still waits for members, nothing is called missing", async () => {
    const { host, kernel, see } = watched();
    const unit = host.unitTable.get("corium-arrays.service");
    if (unit === undefined) throw new Error("no unit");
    unit.activeState = "activating";
    host.programs.set("mdadm", () => ({ exitCode: 1 }));
    expect(await see()).toEqual([]);
    unit.activeState = "failed";
    expect(await see()).toEqual(["array-failed"]);
    expect(kernel.told).toEqual([]);
  });

  test("a daemon that is started again says nothing twice", async () => {
    const { host, kernel, state, watch, see } = watched();
    await see(() => kernel.disks.delete("vdc"));
    await see();
    const said = state.events.last().length;
    const ending = new AbortController();
    state.owned.put(owned);
    const running = watchArrays({ ...watch, signal: ending.signal });
    await Bun.sleep(20);
    ending.abort();
    await running;
    expect(state.events.last()).toHaveLength(said);
    expect(host.text("/run/corium/arrays.json")).toContain('"degraded"');
  });
});

test("a glance sees disks and states, not how fast a rebuild is", async () => {
  const host = fakeHost();
  const at = async (percent: string, speed: string): Promise<string> => {
    host.put(
      "/proc/mdstat",
      `md127 : active raid1 vdd[2] vdb[0]\n      203776 blocks super 1.2 [2/1] [U_]\n      [=====>...............]  recovery = ${percent}% (60032/203776) finish=${speed}min speed=60032K/sec\n      bitmap: 1/1 pages [4KB], 65536KB chunk\n`,
    );
    return glance(host);
  };
  expect(await at("29.3", "0.1")).toBe(await at("29.9", "2.4"));
  expect(await at("29.3", "0.1")).not.toBe(await at("31.0", "0.1"));
});
