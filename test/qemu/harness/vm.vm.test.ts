// budget: 180 s
import { expect, test } from "bun:test";
import { miniGuest } from "./mini-guest.ts";
import { withVm } from "./vm.ts";

const mini = await miniGuest();

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
