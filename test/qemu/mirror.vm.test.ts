// budget: 2400 s, last
/**
 * A system on two disks, installed once and never started; from overlays of that pair it is started with one disk, with
 * both, and with the other one. test/nightly/mirror.vm.test.ts starts it with either disk under either firmware.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testImage } from "./harness/image.ts";
import { installedPair } from "./harness/installed.ts";
import { withVm, type Vm } from "./harness/vm.ts";

const image = await testImage();
const directory = mkdtempSync(join(tmpdir(), "corium-mirror-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Four times what it takes alone under TCG. */
const BOOT_MS = 500_000;

interface Facts {
  readonly isMirrored?: boolean;
  readonly partUuids: Readonly<Record<string, string>>;
}
const factsOf = async (vm: Vm): Promise<Facts> => JSON.parse(await vm.shell.must("cat /run/corium/boot.json")) as Facts;
const generationOf = async (vm: Vm): Promise<number> =>
  (JSON.parse(await vm.shell.must("corium bootstate show")) as { readonly generation: number }).generation;

/** Claimable, and what the mirror is like stands on the same screen. */
async function started(vm: Vm, mirror: RegExp): Promise<void> {
  await vm.console.expect(/claim code: /, BOOT_MS);
  await vm.console.expect(mirror, BOOT_MS);
  await vm.shell.waitReady(BOOT_MS);
}

/** At any time since it was started: what is said at once with something else has no order. */
async function said(vm: Vm, what: RegExp): Promise<void> {
  const deadline = performance.now() + BOOT_MS;
  while (!what.test(vm.console.text())) {
    if (performance.now() > deadline) throw new Error(`the console never said ${String(what)}:\n${vm.console.tail()}`);
    await Bun.sleep(1000);
  }
}

const DEGRADED = /array: system raid1 degraded 1\/2/;
const HEALTHY = /array: system raid1 healthy 2\/2/;
const MARK = "/var/lib/corium/mark";
/** Of every array, in the order of /proc/mdstat. */
const SHAPES = "grep -o '\\[[U_]*\\]$' /proc/mdstat | sort | uniq -c | tr -s ' '";

const [first, second] = await installedPair(image, directory);

describe("B033: a mirrored system", () => {
  let before: Facts | undefined;
  let generation = 0;

  test(
    "starts cold with its second disk gone, says so, and remembers what happens meanwhile",
    async () => {
      await withVm({ name: "mirror-first", memoryMiB: 1024, disks: [first] }, async (vm) => {
        await vm.console.expect(/array corium-\S+ is DEGRADED: started with one disk of two/, BOOT_MS);
        await started(vm, DEGRADED);
        before = await factsOf(vm);
        expect(before).toMatchObject({ mode: "disk", slot: "A", isMirrored: true });
        expect(await vm.shell.must(SHAPES)).toBe(" 6 [U_]");
        await vm.shell.must("corium bootstate set-state B bad");
        generation = await generationOf(vm);
        await vm.shell.must(`echo newer >${MARK} && sync`);
        expect(await vm.shell.must("systemctl --failed --no-legend --plain")).toBe("");
        await vm.kill();
      });
    },
    3 * BOOT_MS,
  );

  test(
    "takes the newer state though the stale disk is the first one again, and makes both equal by itself",
    async () => {
      const disks = [
        { ...second, bootIndex: 0 },
        { ...first, bootIndex: 1 },
      ];
      await withVm({ name: "mirror-stale-first", memoryMiB: 1024, disks }, async (vm) => {
        await started(vm, HEALTHY);
        const { shell } = vm;
        expect((await factsOf(vm)).partUuids).toEqual(before?.partUuids ?? {});
        expect(await shell.must(`cat ${MARK}`)).toBe("newer");
        expect(await generationOf(vm)).toBe(generation);
        expect(await shell.must(SHAPES)).toBe(" 6 [UU]");
        // vda is the stale one. Its ESP is written once all its members have everything.
        await said(vm, /boot loader and boot environment of \/dev\/vda are those of \/dev\/vdb again/);
        await shell.must(`set -e
          for disk in vda vdb; do
            mkdir -p /run/t/$disk; mount -o ro /dev/\${disk}2 /run/t/$disk
          done
          rc=0; diff -r /run/t/vda /run/t/vdb || rc=1
          umount /run/t/vda /run/t/vdb
          cmp -n 440 /dev/vda /dev/vdb; cmp /dev/vda1 /dev/vdb1; exit $rc`);
        await shell.must("corium bootstate set-state B bad && sync");
        await vm.kill();
      });
    },
    3 * BOOT_MS,
  );

  test(
    "starts cold from the disk that came back, when the other one goes",
    async () => {
      const disks = [{ ...second, bootIndex: 0 }];
      await withVm({ name: "mirror-second", firmware: "ovmf", memoryMiB: 1024, disks }, async (vm) => {
        await started(vm, DEGRADED);
        expect((await factsOf(vm)).partUuids["esp"]).not.toBe(before?.partUuids["esp"] ?? "");
        expect(await vm.shell.must(`cat ${MARK}`)).toBe("newer");
        expect(await generationOf(vm)).toBe(generation);
      });
    },
    3 * BOOT_MS,
  );
});
