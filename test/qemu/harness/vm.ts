/** Starting and steering one virtual machine. Whatever is started here ends with the test, by its process id. */
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chooseAccel } from "./accel.ts";
import { diskDevice, diskDeviceId, qemuArgv } from "./argv.ts";
import type { DiskOptions, VmOptions } from "./options.ts";
import { openQmp, type Qmp } from "./qmp.ts";
import { attachSerial, connectUnix, EMULATOR_FLAW_SAID, type Serial } from "./serial.ts";
import { attachShell, type Shell } from "./shell.ts";
import { startTpm } from "./tpm.ts";

export interface Vm {
  readonly name: string;
  readonly pid: number;
  /** ttyS0. */
  readonly console: Serial;
  /** Root shell on ttyS1; throws when started with `shell: false`. */
  readonly shell: Shell;
  readonly qmp: Qmp;
  readonly consoleLog: string;
  /** Where on this host a forwarded guest port is. */
  port(guest: number): number;
  /** Image path of a disk. */
  diskPath(serial: string): string;
  /** Write requests that reached the disk since the machine started, flushes and discards not counted. */
  writeCount(serial: string): Promise<number>;
  /** Pulls the disk out and waits until the guest let it go. */
  pull(serial: string): Promise<void>;
  /** Puts a pulled disk back, with what was on it. */
  plug(serial: string): Promise<void>;
  setLink(isUp: boolean, card?: "nic0" | "nic1"): Promise<void>;
  /** The reset button. */
  reset(): Promise<void>;
  /** The power button: ACPI. */
  powerdown(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Needs every writable disk to be qcow2. */
  saveSnapshot(tag: string): Promise<void>;
  loadSnapshot(tag: string): Promise<void>;
  /** Until QEMU ends by itself (guest power-off, or its reboot with `isRebootExit`). */
  waitExit(timeoutMs: number): Promise<void>;
  /** SIGKILL: what a power cut is for a disk without a volatile cache. */
  kill(): Promise<void>;
  /** Ends QEMU (disks are flushed) and drops its temporary files. */
  stop(): Promise<void>;
}

export const LOG_DIRECTORY = join(import.meta.dir, "../../../out/vm-logs");

const running = new Map<number, () => void>();
let starts = 0;

process.on("exit", () => {
  for (const kill of running.values()) kill();
});

/** Runs `use` on a started machine and always ends it. */
export async function withVm<T>(options: VmOptions, use: (vm: Vm) => Promise<T>): Promise<T> {
  const vm = await startVm(options);
  try {
    return await use(vm);
  } finally {
    await vm.stop();
  }
}

export async function startVm(options: VmOptions): Promise<Vm> {
  const accel = await chooseAccel();
  const directory = mkdtempSync(join(tmpdir(), "corium-vm-"));
  mkdirSync(LOG_DIRECTORY, { recursive: true });
  starts += 1;
  const logBase = join(LOG_DIRECTORY, `${options.name}-${process.pid}-${starts}`);
  const consoleLog = `${logBase}.console.log`;
  const disks = options.disks ?? [];
  const ports = new Map<number, number>();
  for (const guest of options.forwards ?? []) ports.set(guest, options.hostPorts?.[guest] ?? (await freePort()));
  const { sharedLog } = options;
  if (sharedLog !== undefined) writeFileSync(sharedLog.log, "");
  const diskPaths = disks.map((disk, index) => sharedLog?.path ?? diskImage(disk, index, directory));
  const firmware = options.firmware === "ovmf" ? ovmf(options, directory) : {};
  const tpm = options.tpm === undefined ? undefined : await startTpm(options.tpm, directory);
  const argv = qemuArgv(options, {
    accel,
    directory,
    consoleLog,
    diskPaths,
    ports,
    ...firmware,
    ...(tpm === undefined ? {} : { tpmSocket: tpm.socket }),
  });
  // The kernel ends QEMU too when this process is killed with no chance to clean up.
  const guard = existsSync("/usr/bin/setpriv") ? ["/usr/bin/setpriv", "--pdeathsig", "KILL"] : [];
  const qemuLog = `${logBase}.qemu.log`;
  const qemu = Bun.spawn([...guard, ...argv], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  writeFileSync(qemuLog, `${argv.join(" ")}\n`);
  const stderrDone = qemu.stderr.pipeTo(
    new WritableStream({
      write: (chunk) => {
        appendFileSync(qemuLog, chunk);
      },
    }),
  );
  running.set(qemu.pid, () => {
    qemu.kill("SIGKILL");
    tpm?.stop();
  });

  const dispose = async (): Promise<void> => {
    await qemu.exited;
    running.delete(qemu.pid);
    tpm?.stop();
    await stderrDone.catch(() => undefined);
    rmSync(directory, { recursive: true, force: true });
  };
  void qemu.exited.then(() => {
    // Nothing that a guest does may end a program that way.
    if (qemu.signalCode === "SIGSEGV") process.stderr.write(`${options.name}: QEMU crashed; ${EMULATOR_FLAW_SAID}\n`);
  });
  const isGone = (): boolean => qemu.exitCode !== null;
  let console: Serial;
  let shell: Shell | undefined;
  let qmp: Qmp;
  try {
    qmp = await openQmp(await connectUnix(`${directory}/qmp`, 20_000, isGone));
    const endBroken = (): void => {
      process.stderr.write(`${options.name}: ${EMULATOR_FLAW_SAID}\n`);
      qemu.kill("SIGKILL");
    };
    const port0 = await connectUnix(`${directory}/tty0`);
    // On a real processor it is a bug of the kernel, and stays one.
    console = attachSerial(port0, options.name, accel === "tcg" ? endBroken : undefined);
    if (options.shell !== false) {
      const port = attachSerial(await connectUnix(`${directory}/tty1`), `${options.name} (ttyS1)`);
      shell = attachShell(port, options.name);
    }
    // It was started with -S, so that not one byte of the console is missed.
    await qmp.execute("cont");
  } catch (error) {
    qemu.kill("SIGKILL");
    await dispose();
    throw new Error(`qemu did not start: ${await Bun.file(qemuLog).text()}`, { cause: error });
  }

  const indexOf = (serial: string): number => {
    const index = disks.findIndex((disk) => disk.serial === serial);
    if (index < 0) throw new Error(`${options.name} has no disk ${serial}`);
    return index;
  };
  const withDisk = (serial: string): readonly [DiskOptions, number] => {
    const index = indexOf(serial);
    return [disks[index] as DiskOptions, index];
  };

  return {
    name: options.name,
    pid: qemu.pid,
    console,
    get shell() {
      if (shell === undefined) throw new Error(`${options.name} was started without a shell`);
      return shell;
    },
    qmp,
    consoleLog,
    port: (guest) => {
      const host = ports.get(guest);
      if (host === undefined) throw new Error(`${options.name} forwards no port ${guest}`);
      return host;
    },
    diskPath: (serial) => diskPaths[indexOf(serial)] ?? "",
    writeCount: async (serial) => {
      const id = diskDeviceId(indexOf(serial));
      const rows = (await qmp.execute("query-blockstats")) as readonly BlockStats[];
      const row = rows.find((each) => each.qdev?.split("/").includes(id) === true);
      if (row === undefined) throw new Error(`qemu has no counters of disk ${serial}: is it pulled?`);
      return row.stats.wr_operations;
    },
    pull: async (serial) => {
      const [disk, index] = withDisk(serial);
      const id = diskDeviceId(index);
      if (disk.isPullable !== true && disk.bus !== "scsi") throw new Error(`disk ${serial} is not pullable`);
      // virtio-blk sends a first DEVICE_DELETED without a device.
      const gone = qmp.waitEvent((event) => event.event === "DEVICE_DELETED" && event.data["device"] === id, 30_000);
      await qmp.execute("device_del", { id });
      await gone;
    },
    plug: async (serial) => {
      const [disk, index] = withDisk(serial);
      await qmp.execute("device_add", diskDevice(disk, index));
    },
    setLink: async (isUp, card = "nic0") => {
      await qmp.execute("set_link", { name: card, up: isUp });
    },
    reset: async () => {
      await qmp.execute("system_reset");
    },
    powerdown: async () => {
      await qmp.execute("system_powerdown");
    },
    pause: async () => {
      await qmp.execute("stop");
    },
    resume: async () => {
      await qmp.execute("cont");
    },
    saveSnapshot: async (tag) => {
      await qmp.monitor(`savevm ${tag}`);
    },
    loadSnapshot: async (tag) => {
      await qmp.monitor(`loadvm ${tag}`);
    },
    waitExit: async (timeoutMs) => {
      const inTime = await Promise.race([qemu.exited.then(() => true), Bun.sleep(timeoutMs).then(() => false)]);
      if (!inTime)
        throw new Error(`${options.name} still runs after ${timeoutMs / 1000} s; the last lines:\n${console.tail()}`);
    },
    kill: async () => {
      qemu.kill("SIGKILL");
      await qemu.exited;
    },
    stop: async () => {
      if (!isGone()) await qmp.execute("quit", undefined, 10_000).catch(() => undefined);
      const timer = setTimeout(() => {
        qemu.kill("SIGKILL");
      }, 10_000);
      await qemu.exited;
      clearTimeout(timer);
      console.close();
      qmp.close();
      await dispose();
    },
  };
}

interface BlockStats {
  readonly qdev?: string;
  readonly stats: { readonly wr_operations: number };
}

function diskImage(disk: DiskOptions, index: number, directory: string): string {
  const path = disk.path ?? join(directory, `disk${index}.raw`);
  if (disk.path === undefined) {
    if (disk.sizeMiB === undefined) throw new Error(`disk ${disk.serial} has neither path nor sizeMiB`);
    writeFileSync(path, "");
    truncateSync(path, disk.sizeMiB * 1024 * 1024);
  }
  if (disk.writeLog !== undefined) writeFileSync(disk.writeLog, "");
  return path;
}

function ovmf(options: VmOptions, directory: string): { readonly firmwareCode: string; readonly firmwareVars: string } {
  const share = "/usr/share/OVMF";
  const firmwareVars = options.firmwareVars ?? join(directory, "vars.fd");
  if (!existsSync(firmwareVars)) copyFileSync(`${share}/OVMF_VARS_4M.fd`, firmwareVars);
  return { firmwareCode: `${share}/OVMF_CODE_4M.fd`, firmwareVars };
}

/** Free at this moment; nothing else on the machine should take it before QEMU does. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once("error", reject);
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    resolve(typeof address === "object" && address !== null ? address.port : 0);
  });
  const port = await promise;
  await new Promise((done) => server.close(done));
  return port;
}
