import { describe, expect, test } from "bun:test";
import { decodeBootEnv, encodeBootEnv, FIRST_GENERATION, newBootEnv } from "../iso/bootenv.ts";
import type { BootEnv } from "../iso/bootenv.ts";
import { bootState } from "../iso/driver.ts";
import { partUuidsOf, twinOf } from "../iso/uuids.ts";
import type { BootFacts } from "../kit/paths.ts";
import { MachineDied } from "../test/support/fake-host.ts";
import type { FakeDisk, FakeMirror } from "../test/support/fake-mirror.ts";
import { fakeMirror, INSTALLATION } from "../test/support/fake-mirror.ts";
import { mirrorTender } from "./mirror-watch.ts";

const encoded = (more: Partial<BootEnv> = {}): string =>
  new TextDecoder().decode(encodeBootEnv({ ...newBootEnv(INSTALLATION), ...more }));

function machine() {
  const mirror = fakeMirror(encoded());
  const told: string[] = [];
  const { host } = mirror;
  const tend = mirrorTender({ host, installation: INSTALLATION, tell: (how, what) => told.push(`${how}: ${what}`) });
  return { ...mirror, told, tend };
}

const generation = ({ esp }: FakeDisk): number => {
  const env = decodeBootEnv(new TextEncoder().encode(esp.get("corium/env") ?? ""));
  return env.ok ? env.value.generation - newBootEnv(INSTALLATION).generation : -1;
};
/** Of the disk that GRUB came from. */
const facts = (installation: string): BootFacts => {
  const { esp, bootA: boot, rootA: root, state, data } = partUuidsOf(installation);
  return {
    mode: "disk",
    slot: "A",
    installation: INSTALLATION,
    isMirrored: true,
    partUuids: { esp, boot, root, state, data },
  };
};
const ask = (mirror: FakeMirror, from = INSTALLATION) =>
  bootState(mirror.host, facts(from), { kind: "set-state", slot: "B", verdict: "bad" });
const writesTo = ({ host }: FakeMirror, name: string): readonly string[] =>
  host.calls.filter((call) => new RegExp(`^exec (mkfs|dd of|mount .*rw.*) .*${name}`).test(call));

describe("a mirrored system", () => {
  test("two equal disks are looked at and left alone; later looks read sysfs only", async () => {
    const { tend, told, host } = machine();
    await tend();
    expect(told).toEqual([]);
    expect(host.calls.filter((call) => /^exec (mkfs|dd|cp|mdadm)/.test(call))).toEqual([]);
    const before = host.calls.filter((call) => call.startsWith("exec")).length;
    await tend();
    expect(host.calls.filter((call) => call.startsWith("exec"))).toHaveLength(before);
  });

  test("a disk of it is being replaced: its members are not taken back by two at once", async () => {
    const mirror = machine();
    const [, second] = mirror.disks;
    Object.assign(second, { state: "out" });
    mirror.show();
    let isReplaced = true;
    const told: string[] = [];
    const tell = (_: string, what: string): unknown => told.push(what);
    const tend = mirrorTender({ host: mirror.host, installation: INSTALLATION, tell, isReplaced: () => isReplaced });
    await tend();
    expect([told, mirror.host.calls.filter((call) => call.startsWith("exec"))]).toEqual([[], []]);
    isReplaced = false;
    await tend();
    expect(told).toContainEqual(expect.stringContaining("the system runs without its mirror"));
  });

  test("somebody looks at the ESP just when it is to be unmounted: it is tried again, not taken for a failure", async () => {
    const mirror = machine();
    const { programs } = mirror.host;
    const umount = programs.get("umount");
    let busyTries = 3;
    programs.set("umount", (call, fake) => {
      busyTries -= 1;
      if (busyTries < 0) return umount?.(call, fake) ?? "";
      return { exitCode: 32, stderr: `umount: ${call.argv.at(-1) ?? ""}: target is busy.` };
    });
    const asked = ask(mirror);
    await mirror.host.clock.sleep(1_000);
    expect(await asked).toEqual({ ok: true, value: "" });
    expect([busyTries < 0, mirror.disks.map(generation)]).toEqual([true, [1, 1]]);
  });

  test("the boot environment is written to both disks, whichever was booted", async () => {
    for (const from of [INSTALLATION, twinOf(INSTALLATION)]) {
      const mirror = machine();
      expect(await ask(mirror, from)).toEqual({ ok: true, value: "" });
      expect(mirror.disks.map(generation)).toEqual([1, 1]);
    }
  });

  test("a disk that has not got everything keeps its old environment, so that GRUB takes the other", async () => {
    for (const state of ["spare", "out", "faulty"] as const) {
      const mirror = machine();
      mirror.disks[0].state = state;
      mirror.show();
      expect((await ask(mirror)).ok).toBe(true);
      expect(mirror.disks.map(generation)).toEqual([0, 1]);
      expect(writesTo(mirror, "vda")).toEqual([]);
    }
  });

  test("the newer of two environments is what is decided upon", async () => {
    const mirror = machine();
    mirror.disks[0].state = "out";
    mirror.show();
    await ask(mirror);
    mirror.disks[0].state = "in_sync";
    mirror.show();
    // What the newer one says already changes nothing, and a change goes on from it.
    expect(await ask(mirror)).toEqual({ ok: true, value: "" });
    expect(mirror.disks.map(generation)).toEqual([0, 1]);
    await bootState(mirror.host, facts(INSTALLATION), { kind: "set-primary", slot: "B" });
    expect(mirror.disks.map(generation)).toEqual([2, 2]);
  });

  test("without a disk that has everything nothing is written", async () => {
    const mirror = machine();
    for (const disk of mirror.disks) disk.state = "spare";
    mirror.show();
    expect(await ask(mirror)).toMatchObject({ ok: false, error: { code: "boot-environment" } });
    expect(mirror.disks.map(generation)).toEqual([0, 0]);
  });

  test("a disk that was pulled and comes back is taken back, and made equal once it has everything", async () => {
    const mirror = machine();
    const { disks, tend, told, show, host } = mirror;
    const [, second] = disks;
    await tend();
    second.isThere = false;
    show();
    await tend();
    expect(told).toEqual(["warning: the system runs without its mirror: /dev/vda alone has everything"]);
    expect(second.state).toBe("out");
    await ask(mirror);
    // Another name than before: the kernel gives the old one to nobody while it is held.
    second.isThere = true;
    second.name = "vdc";
    show();
    await tend();
    expect(mirror.isCopying()).toBe(true);
    expect(told[1]).toStartWith("info: taken back into the mirror and being copied to: /dev/vdc3, /dev/vdc4");
    show();
    await tend();
    expect(generation(second)).toBe(0);
    expect(writesTo(mirror, "vdc")).toEqual([]);
    second.state = "in_sync";
    show();
    await tend();
    expect(told.slice(2)).toEqual([
      "info: boot loader and boot environment of /dev/vdc are those of /dev/vda again",
      "info: the system is mirrored on both disks again",
    ]);
    expect(disks.map(generation)).toEqual([1, 1]);
    expect(host.calls.some((call) => call.startsWith("exec mkfs"))).toBe(false);
  });

  test("a copy that a restart cut off goes on, in arrays that nobody writes to as well", async () => {
    const { disks, tend, show, isCopying } = machine();
    disks[1].state = "spare";
    show();
    await tend();
    expect(isCopying()).toBe(true);
  });

  test("a disk with no boot loader, or another one, gets that of the disk with the newest environment", async () => {
    const { disks, tend } = machine();
    const [first, second] = disks;
    first.esp.clear();
    first.isFat = false;
    first.code = "";
    first.core = "older";
    // What can't be read now may be the newest: only after a while it is believed to be lost.
    for (let looks = 0; looks < 3; looks++) await tend();
    expect([first.code, first.core]).toEqual(["", "older"]);
    await tend();
    expect([first.code, first.core]).toEqual(["boot code", "core"]);
    expect([...first.esp.keys()].toSorted()).toEqual([...second.esp.keys()].toSorted());
    expect(disks.map(generation)).toEqual([0, 0]);
  });

  test("power lost at any call while a disk is made equal: the good one stays what it is, and the other becomes it", async () => {
    const calls = async (dieAt?: number): Promise<number> => {
      const mirror = machine();
      const { disks, host, reboot } = mirror;
      // What an older release left on the first disk, with the environment of today or one before it.
      disks[0].core = "older";
      disks[0].code = "older";
      disks[0].esp.set("EFI/BOOT/BOOTX64.EFI", "older");
      disks[0].esp.set("corium/env", encoded({ generation: FIRST_GENERATION }));
      disks[1].esp.set("corium/env", encoded({ generation: FIRST_GENERATION + 1 }));
      const before = host.calls.length;
      if (dieAt !== undefined) host.dieAt(before + dieAt, "before");
      try {
        await mirror.tend();
      } catch (thrown) {
        if (!(thrown instanceof MachineDied)) throw thrown;
      }
      const made = host.calls.length - before;
      reboot();
      const again = mirrorTender({ host, installation: INSTALLATION, tell: () => undefined });
      for (let looks = 0; looks < 5; looks++) await again();
      for (const { core, code, esp } of disks)
        expect({ dieAt, core, code, shim: esp.get("EFI/BOOT/BOOTX64.EFI") }).toEqual({
          dieAt,
          core: "core",
          code: "boot code",
          shim: "shim",
        });
      expect(disks.map(generation)).toEqual([1, 1]);
      return made;
    };
    const total = await calls();
    expect(total).toBeGreaterThan(30);
    for (let dieAt = 1; dieAt <= total; dieAt += 1) await calls(dieAt);
  }, 60_000);

  test("while another program has the ESPs, both wait: one is not read as empty, and not written twice at once", async () => {
    const mirror = machine();
    const { disks, tend, host } = mirror;
    disks[0].core = "older";
    host.put("/run/corium/esp.lock", String(host.clock.monotonicMs()));
    const [shown] = await Promise.all([
      bootState(host, facts(INSTALLATION), { kind: "get-primary" }),
      tend(),
      (async () => {
        await host.clock.sleep(2_000);
        expect(host.calls.filter((call) => call.startsWith("exec mount"))).toEqual([]);
        await host.files.remove("/run/corium/esp.lock");
      })(),
    ]);
    expect(shown).toEqual({ ok: true, value: "A\n" });
    expect(disks[1].core).toBe("older");
    // A holder that was killed does not hold it for ever.
    host.put("/run/corium/esp.lock", "0");
    await host.clock.sleep(400_000);
    expect((await bootState(host, facts(INSTALLATION), { kind: "get-primary" })).ok).toBe(true);
  });

  test("a disk that went on alone is not merged with this one, and that is said once", async () => {
    const { disks, tend, told, show, host } = machine();
    disks[1].state = "out";
    disks[1].hasRunAlone = true;
    show();
    await tend();
    await tend();
    host.put("/sys/block/sr0/size", "1");
    await tend();
    expect(disks[1].state).toBe("out");
    expect(told.filter((line) => line.includes("/dev/vdb3 on /dev/vdb went on alone"))).toHaveLength(1);
    expect(host.calls.some((call) => /--re-add|--add/.test(call))).toBe(false);
  });

  test("a member that failed while its disk is there is not taken back again and again", async () => {
    const { disks, tend, show, host } = machine();
    disks[1].state = "faulty";
    show();
    await tend();
    expect(host.calls.some((call) => /--re-add|--add/.test(call))).toBe(false);
  });
});
