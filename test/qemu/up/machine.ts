/** The virtual machine of `./dev up`: unlike those of the tests it outlives the program that started it. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chooseAccel } from "../harness/accel.ts";
import { qemuArgv } from "../harness/argv.ts";
import type { VmOptions } from "../harness/options.ts";
import { type Qmp, openQmp } from "../harness/qmp.ts";
import { type Serial, openSerial, connectUnix } from "../harness/serial.ts";
import { freePort } from "../harness/vm.ts";

export const folder = join(import.meta.dir, "../../../out/up");
const record = join(folder, "machine.json");

export interface Machine {
  readonly pid: number;
  /** Sockets. Short, because a socket's path ends after 107 bytes. */
  readonly directory: string;
  /** On 127.0.0.1, forwarded to the API. */
  readonly apiPort: number;
  readonly consoleLog: string;
}

/** The recorded machine, when its process still is ours and runs. */
export function runningMachine(): Machine | undefined {
  if (!existsSync(record)) return undefined;
  const machine = JSON.parse(readFileSync(record, "utf8")) as Machine;
  return isOurs(machine) ? machine : undefined;
}

/** A pid may be somebody else's by now. */
function isOurs({ pid, directory }: Machine): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(directory);
  } catch {
    return false;
  }
}

export interface Started {
  readonly machine: Machine;
  readonly serial: Serial;
  readonly qmp: Qmp;
}

/**
 * `install`: empty disks, and the process ends when the machine restarts. `run`: the disks as that left them. QEMU keeps
 * what it translated over a restart, and then each byte that is written over it costs a microsecond: loading a kernel
 * takes forty seconds instead of five. So the machine is switched on anew.
 */
export async function startMachine(
  iso: string,
  phase: "install" | "run",
  onEmulatorFlaw: () => void,
): Promise<Started> {
  mkdirSync(folder, { recursive: true });
  const directory = mkdtempSync(join(tmpdir(), "corium-up-"));
  const consoleLog = join(folder, phase === "install" ? "console-install.log" : "console.log");
  rmSync(consoleLog, { force: true });
  const disks = [
    { serial: "system", sizeMiB: 6144, bootIndex: 0 },
    { serial: "data-a", sizeMiB: 1024 },
    { serial: "data-b", sizeMiB: 1024 },
  ];
  const diskPaths = disks.map(({ serial, sizeMiB }) => {
    const path = join(folder, `${serial}.raw`);
    if (phase === "install") {
      writeFileSync(path, "");
      truncateSync(path, sizeMiB * 1024 * 1024);
    }
    return path;
  });
  const options: VmOptions = {
    name: "corium-up",
    memoryMiB: 2048,
    cpus: 2,
    disks,
    media: [{ path: iso, bootIndex: 1 }],
    shell: false,
    isRebootExit: phase === "install",
  };
  const apiPort = await freePort();
  const argv = qemuArgv(options, {
    accel: await chooseAccel(),
    directory,
    consoleLog,
    diskPaths,
    ports: new Map([[7443, apiPort]]),
  });
  const log = openSync(join(folder, "qemu.log"), "w");
  const qemu = Bun.spawn(argv, { stdin: "ignore", stdout: log, stderr: log, detached: true });
  qemu.unref();
  const machine: Machine = { pid: qemu.pid, directory, apiPort, consoleLog };
  writeFileSync(record, `${JSON.stringify(machine)}\n`);
  const isGone = (): boolean => qemu.exitCode !== null;
  try {
    const qmp = await openQmp(await connectUnix(join(directory, "qmp"), 20_000, isGone));
    const serial = await openSerial(join(directory, "tty0"), "corium-up", onEmulatorFlaw);
    await qmp.execute("cont");
    return { machine, serial, qmp };
  } catch (error) {
    stopMachine();
    throw new Error(`qemu did not start: ${readFileSync(join(folder, "qemu.log"), "utf8").trim()}`, { cause: error });
  }
}

/** Its disks are free for the next one. */
export async function ended(machine: Machine): Promise<void> {
  while (isOurs(machine)) await Bun.sleep(100);
  rmSync(machine.directory, { recursive: true, force: true });
}

/** Whether there was one to stop. */
export function stopMachine(): boolean {
  if (!existsSync(record)) return false;
  const machine = JSON.parse(readFileSync(record, "utf8")) as Machine;
  const isRunning = isOurs(machine);
  if (isRunning) process.kill(machine.pid, "SIGKILL");
  rmSync(machine.directory, { recursive: true, force: true });
  for (const name of ["machine.json", "system.raw", "data-a.raw", "data-b.raw", "cctl"]) {
    rmSync(join(folder, name), { recursive: true, force: true });
  }
  return isRunning;
}

/** The terminal becomes the machine's serial line until ctrl-] is pressed. */
export async function attachConsole({ directory }: Machine): Promise<void> {
  const socket = connect(join(directory, "tty0"));
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.on("error", (error) => {
    process.stderr.write(`${error.message}\n`);
    resolve();
  });
  socket.on("close", () => resolve());
  socket.on("data", (chunk) => process.stdout.write(chunk));
  const isTerminal = process.stdin.isTTY === true;
  if (isTerminal) process.stdin.setRawMode(true);
  process.stderr.write("the serial console; ctrl-] leaves it\r\n");
  process.stdin.on("data", (chunk: Buffer) => {
    const leave = chunk.indexOf(0x1d);
    if (leave === -1) socket.write(chunk);
    else resolve();
  });
  process.stdin.on("end", () => resolve());
  await closed;
  if (isTerminal) process.stdin.setRawMode(false);
  socket.destroy();
}
