// budget: 400 s
import { afterAll, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createQcow2, createRaw, sha256 } from "./disk.ts";
import { HOST_ADDRESS, startServer } from "./http.ts";
import { miniGuest } from "./mini-guest.ts";
import { EMULATOR_FLAW_SAID } from "./serial.ts";
import { withVm } from "./vm.ts";
import { readWriteLog, replay, survivors } from "./write-log.ts";

const mini = await miniGuest();
const directory = mkdtempSync(join(tmpdir(), "corium-vm-test-"));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

test(
  "the harness sees console, shell, disks and their write counters",
  () =>
    withVm(
      {
        name: "harness-mini",
        kernel: mini,
        memoryMiB: 512,
        disks: [
          { serial: "VIRTIO-A", sizeMiB: 16, isPullable: true },
          { serial: "NVME-B", sizeMiB: 16, bus: "nvme", isPullable: true },
          { serial: "SCSI-C", sizeMiB: 16, bus: "scsi", sectorBytes: 4096 },
        ],
      },
      async (vm) => {
        await vm.console.expect(/mini guest ready/, 60_000);
        vm.console.send("hello\n");
        await vm.console.expect(/you said hello/, 10_000);
        await vm.shell.waitReady(20_000);
        expect(await vm.shell.run("echo out; echo err >&2; exit 7")).toEqual({
          exitCode: 7,
          stdout: "out\n",
          stderr: "err\n",
        });
        // Longer than the tty's buffer, both ways, and with bytes a shell would eat.
        const long = `${"x".repeat(9000)} $HOME 'a' "b" \\`;
        expect(await vm.shell.must(`cat <<'EOF'\n${long}\nEOF`)).toBe(long);
        await expect(vm.shell.must("false")).rejects.toThrow("exit 1 of: false");

        expect(
          await vm.shell.must(
            "until [ -b /dev/vda ] && [ -b /dev/nvme0n1 ] && [ -b /dev/sda ]; do sleep 0.1; done; cat /sys/block/vda/serial",
          ),
        ).toBe("VIRTIO-A");
        expect(await vm.shell.must("cat /sys/block/nvme0n1/device/serial")).toMatch(/^NVME-B *$/);
        expect(await vm.shell.must("cat /sys/block/sda/queue/logical_block_size")).toBe("4096");

        expect(await vm.writeCount("VIRTIO-A")).toBe(0);
        await vm.shell.must("cat /dev/vda /dev/nvme0n1 /dev/sda >/dev/null");
        expect(await vm.writeCount("VIRTIO-A")).toBe(0);
        await vm.shell.must("echo kept >/dev/vda; sync");
        expect(await vm.writeCount("VIRTIO-A")).toBeGreaterThan(0);
        expect(await vm.writeCount("NVME-B")).toBe(0);

        for (const serial of ["VIRTIO-A", "NVME-B", "SCSI-C"]) await vm.pull(serial);
        await vm.shell.must("while [ -e /sys/block/vda ] || [ -e /sys/block/sda ]; do sleep 0.1; done", 20_000);
        await vm.plug("VIRTIO-A");
        expect(await vm.shell.must("until [ -b /dev/vda ]; do sleep 0.1; done; head -c 4 /dev/vda", 20_000)).toBe(
          "kept",
        );

        await vm.reset();
        await vm.console.expect(/mini guest ready/, 60_000);
        await vm.shell.waitReady(20_000);
        await vm.shell.must("true");
      },
    ),
  120_000,
);

test("a wait that is not answered fails with the console's tail, a panic at once", async () => {
  await withVm({ name: "harness-panic", kernel: mini, memoryMiB: 512, isRebootExit: true }, async (vm) => {
    await vm.console.expect(/mini guest ready/, 60_000);
    await expect(vm.console.expect(/never printed/, 500)).rejects.toThrow(/nothing for 0\.5 s[\s\S]*mini guest ready/);
    const started = performance.now();
    const waiting = vm.console.expect(/never printed/, 60_000);
    await vm.shell.waitReady(20_000);
    void vm.shell.run("echo c >/proc/sysrq-trigger", 30_000).catch(() => undefined);
    await expect(waiting).rejects.toThrow("Kernel panic");
    await waiting.catch(() => undefined);
    expect(performance.now() - started).toBeLessThan(40_000);
    await vm.waitExit(20_000);
  });
}, 120_000);

test("QEMU that crashed by itself passed for a failure of what was tested", async () => {
  const said = spyOn(process.stderr, "write").mockImplementation(() => true);
  try {
    await withVm({ name: "harness-crash", kernel: mini, memoryMiB: 512, shell: false }, async (vm) => {
      const waiting = vm.console.expect(/never printed/, 60_000);
      process.kill(vm.pid, "SIGSEGV");
      await expect(waiting).rejects.toThrow("the machine is gone");
      await vm.waitExit(20_000);
    });
    expect(said.mock.calls.join("")).toContain(EMULATOR_FLAW_SAID);
  } finally {
    said.mockRestore();
  }
}, 120_000);

test.each(["bios", "ovmf"] as const)(
  "an empty machine boots over the network (%s)",
  async (firmware) => {
    const server = startServer({ directory: dirname(mini.path) });
    const base = `http://${HOST_ADDRESS}:${server.port}`;
    const script = `#!ipxe\nkernel ${base}/vmlinuz initrd=initrd ${mini.append}\ninitrd ${base}/initrd\nboot\n`;
    writeFileSync(join(directory, "boot.ipxe"), script);
    try {
      await withVm(
        { name: `harness-pxe-${firmware}`, firmware, memoryMiB: 512, pxe: { directory, file: "boot.ipxe" } },
        async (vm) => {
          await vm.console.expect(/mini guest ready/, 120_000);
          expect(server.requests).toContain("GET /vmlinuz");
        },
      );
    } finally {
      server.stop();
    }
  },
  180_000,
);

test("two machines see each other on a private segment, until the link is cut", async () => {
  const lan = (last: number): { readonly port: number; readonly mac: string } => ({
    port: 20_000 + (process.pid % 20_000),
    mac: `52:54:00:00:00:0${last}`,
  });
  const start = { kernel: mini, memoryMiB: 384, cpus: 1 };
  await withVm({ name: "harness-lan-1", ...start, lan: lan(1) }, (one) =>
    withVm({ name: "harness-lan-2", ...start, lan: lan(2) }, async (two) => {
      for (const [index, vm] of [one, two].entries()) {
        await vm.console.expect(/mini guest ready/, 90_000);
        await vm.shell.waitReady(20_000);
        await vm.shell.must(
          `until [ -e /sys/class/net/eth1 ]; do sleep 0.1; done; ip link set eth1 up; ip addr add 10.1.0.${index + 1}/24 dev eth1`,
        );
      }
      await one.shell.must("for i in 1 2 3 4 5; do ping -c 1 -W 2 10.1.0.2 && exit 0; done; exit 1");
      await two.setLink(false, "nic1");
      expect((await one.shell.run("ping -c 2 -W 1 10.1.0.2")).exitCode).not.toBe(0);
    }),
  );
}, 180_000);

test("a write log replayed to its end is the disk, byte for byte", async () => {
  const disk = createRaw(join(directory, "logged.raw"), 16);
  const writeLog = join(directory, "writes.log");
  await withVm(
    { name: "harness-log", kernel: mini, memoryMiB: 384, disks: [{ serial: "LOGGED", path: disk, writeLog }] },
    async (vm) => {
      await vm.console.expect(/mini guest ready/, 60_000);
      await vm.shell.waitReady(20_000);
      await vm.shell.must(
        "until [ -b /dev/vda ]; do sleep 0.1; done; for i in 1 2 3; do dd if=/dev/urandom of=/dev/vda bs=4k count=9 seek=$((i*50)) conv=fsync; done",
      );
      await vm.kill();
    },
  );
  const log = readWriteLog(writeLog);
  const copy = createRaw(join(directory, "replayed.raw"), 16);
  replay(log, survivors(log, { at: log.entries.length, seed: 1 }), copy);
  expect(log.entries.length).toBeGreaterThan(3);
  expect(sha256(copy)).toBe(sha256(disk));
  expect(sha256(disk)).not.toBe(sha256(createRaw(join(directory, "empty.raw"), 16)));
}, 120_000);

test("a snapshot brings the running machine back", async () => {
  const path = await createQcow2(join(directory, "snap.qcow2"), { sizeMiB: 64 });
  const disks = [{ serial: "SNAP", path, format: "qcow2" as const }];
  await withVm({ name: "harness-snapshot", kernel: mini, memoryMiB: 384, disks }, async (vm) => {
    await vm.console.expect(/mini guest ready/, 60_000);
    await vm.shell.waitReady(20_000);
    await vm.shell.must("echo before >/run/mark");
    await vm.saveSnapshot("s1");
    await vm.shell.must("echo after >/run/mark");
    await vm.loadSnapshot("s1");
    expect(await vm.shell.must("cat /run/mark")).toBe("before");
  });
}, 120_000);
