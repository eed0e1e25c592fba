// budget: 3000 s
/** A person at a serial line: installs from the CD without a document, and takes the node back at the rescue menu. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRaw } from "../qemu/harness/disk.ts";
import { testImage } from "../qemu/harness/image.ts";
import { openOperator } from "../qemu/harness/node.ts";
import type { DiskOptions } from "../qemu/harness/options.ts";
import { withVm, type Vm } from "../qemu/harness/vm.ts";

const image = await testImage();
const directory = mkdtempSync(join(tmpdir(), "corium-console-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A limit that ends a hang: beside other machines a boot may take minutes. */
const BOOT_MS = 600_000;
/** docs/cctl.md. */
const EXIT_UNAUTHORISED = 4;

/** What is typed before the whole question stands there is no answer to it, so a person reads first. */
const READ_MS = 3000;

const typist =
  ({ console: screen }: Vm) =>
  async (typed: string, answer: RegExp): Promise<RegExpExecArray> => {
    await Bun.sleep(READ_MS);
    screen.skip();
    screen.send(`${typed}\r`);
    return screen.expect(answer, BOOT_MS);
  };

async function install(vm: Vm): Promise<void> {
  const { console: screen } = vm;
  const key = typist(vm);
  // What a terminal may send by itself, and a wrong name: no harm.
  screen.send("\x1b[24;80R\r");
  const [list] = await key("i", /install Corium; disks of this machine:[^]*number of the disk to install on/);
  expect(list).toMatch(/67108864 bytes \(64 MiB\) .*serial small\n +not accepted: [^]*67108864 bytes, \d+ are/);
  const number = /(\d+) +\S+ +6442450944 bytes \(6 GiB\) .*serial chosen\n +blank/.exec(list)?.[1];
  await key(number ?? "", /type: chosen\n/);
  await key("small", /that is not chosen\nnothing was changed/);
  await key("i", /number of the disk to install on/);
  await key(number ?? "", /type: chosen\n/);
  await key("chosen", /the installation begins/);
  await screen.expect(/reboot: Restarting system/, BOOT_MS);
}

async function reKey(vm: Vm): Promise<void> {
  const { console: screen } = vm;
  const key = typist(vm);
  // Nobody knows when GRUB listens; in its menu Escape does nothing.
  const knocking = setInterval(() => screen.send("\x1b"), 400);
  try {
    await screen.expect(/GNU GRUB|key is highlighted|before booting/, BOOT_MS);
  } finally {
    clearInterval(knocking);
  }
  // Down, where a terminal has no arrows.
  screen.send("v");
  await key("", /system: [^]*a letter, then Enter:/);
  expect(screen.text()).not.toContain("problem:");
  const [, name = ""] = await key("k", /type: (\S+)\n/);
  await key(`not-${name}`, /nothing was changed[^]*a letter, then Enter:/);
  await key("k", /type: (\S+)\n/);
  await key(name, /re-keyed: started normally, it shows a new claim code[^]*a letter, then Enter:/);
  await key("f", /state on [^]*mounted,\s+checked before[^]*q to go back:/);
  await key("q", /a letter, then Enter:/);
  await key("s", /type: (\S+)\n/);
  await Bun.sleep(READ_MS);
  screen.send(`${name}\r`);
}

test(
  "installed to the disk that was chosen there; re-keyed at the rescue menu, it obeys another operator, and nothing else changed",
  async () => {
    const first = await openOperator();
    const second = await openOperator();
    const disks: DiskOptions[] = [
      { serial: "small", path: createRaw(join(directory, "small.raw"), 64) },
      { serial: "chosen", path: createRaw(join(directory, "chosen.raw"), 6144), bootIndex: 0 },
    ];
    const media = [{ path: image.iso, bootIndex: 1 }];
    try {
      await withVm({ name: "console", memoryMiB: 1536, media, disks, forwards: [7443] }, async (vm) => {
        const { shell } = vm;
        await vm.console.expect(/phase: live/, BOOT_MS);
        await first.enroll(vm, "claimed", BOOT_MS);
        await install(vm);
        await reKey(vm);
        await second.enroll(vm, "claimed", BOOT_MS);
        await vm.console.expect(/re-keyed at the rescue menu[^]*waiting: a document with a role/, BOOT_MS, {
          fromStart: true,
        });
        await shell.waitReady(BOOT_MS);
        expect(await shell.must("systemctl is-active corium-rescue@ttyS0 || true")).toBe("inactive");
        expect(await second.must(["audit", "claimed"])).toContain("rescue re-key");
        expect((await first.cctl(["status", "claimed"])).exitCode).toBe(EXIT_UNAUTHORISED);
        expect(await shell.must("cat /etc/corium/config.yaml")).toBe("install:\n  disk:\n    serial: chosen");
        expect(await vm.writeCount("small")).toBe(0);
        // Where systemd goes when it can't go on.
        vm.console.skip();
        await shell.must("systemctl --no-block start emergency.target");
        await vm.console.expect(/Corium rescue menu[^]*a letter, then Enter:/, BOOT_MS);
      });
    } finally {
      first.dispose();
      second.dispose();
    }
  },
  4 * BOOT_MS,
);
