/**
 * `./dev up`: a virtual machine boots the ISO, installs itself, reboots, is claimed with the code from its serial
 * console, and becomes a node. Everything goes the way a person would go; nothing reaches into the machine.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import type { NodeAnswer, OperationsAnswer } from "../../api/contract.ts";
import { EMULATOR_FLAW_SAID } from "./harness/serial.ts";
import { serveTime, TIME_SERVER_ARGUMENT } from "./harness/time-server.ts";
import {
  type Machine,
  type Started,
  attachConsole,
  ended,
  folder,
  runningMachine,
  startMachine,
  stopMachine,
} from "./up/machine.ts";

const repository = join(import.meta.dir, "../..");
const store = join(folder, "cctl");
const cctl = join(repository, "out/cctl");
const beganMs = performance.now();

const nodeDocument = `# The node of ./dev up. k0s in its image is the tests' stand-in.
role: single
cluster:
  name: demo
node:
  name: node1
api:
  enabled: true
install:
  disk: { serial: system }
raid:
  - name: data
    level: 1
    devices: [{ serial: data-a }, { serial: data-b }]
    mountPoint: /var/lib/k0s
wireguard:
  - name: wg0
    address: 10.9.0.1/24
    listenPort: 51820
    generateKey: true
`;

function say(text: string): void {
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  process.stderr.write(
    `${process.stderr.isTTY === true ? "\r\u001b[K" : ""}${String(seconds).padStart(4)}s  ${text}\n`,
  );
}

/** Says what is waited for, once; on a terminal also how long already and the machine's last line. */
async function waitFor<T>(what: string, limitSeconds: number, work: Promise<T>, lastLine: () => string): Promise<T> {
  say(`waiting for ${what} (at most ${limitSeconds} s)`);
  const startMs = performance.now();
  const ticker = setInterval(() => {
    if (process.stderr.isTTY !== true) return;
    const waited = Math.round((performance.now() - startMs) / 1000);
    const line = `      ${waited}s  ${lastLine()}`.slice(0, (process.stderr.columns ?? 80) - 1);
    process.stderr.write(`\r\u001b[K${line}`);
  }, 1_000);
  try {
    return await work;
  } finally {
    clearInterval(ticker);
  }
}

interface Ran {
  readonly status: number;
  readonly out: string;
}

async function run(argv: readonly string[], shown: "shown" | "quiet" = "shown"): Promise<Ran> {
  const child = Bun.spawn([...argv], {
    cwd: repository,
    stdin: "ignore",
    stdout: "pipe",
    stderr: shown === "shown" ? "inherit" : "ignore",
    env: { ...process.env, CORIUM_DIR: store },
  });
  const out = await child.stdout.text();
  return { status: await child.exited, out };
}

async function must(argv: readonly string[]): Promise<string> {
  const ran = await run(argv);
  if (ran.status !== 0) throw new Error(`${argv.slice(0, 3).join(" ")} … exited with ${ran.status}\n${ran.out}`);
  return ran.out;
}

async function buildIso(): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const document = join(folder, "node.yaml");
  await Bun.write(document, nodeDocument);
  say("compiling corium and cctl");
  await must([process.execPath, "iso/compile.ts"]);
  await must([join(repository, "out/corium"), "validate", document]);
  say("building the ISO with this document and the STAND-IN for k0s (it is not Kubernetes)");
  const argv = [process.execPath, "iso/build.ts", "--k0s", "sim", "--config", document];
  argv.push("--args", TIME_SERVER_ARGUMENT, "--out", folder);
  // Its own progress is what a person wants to see meanwhile.
  const child = Bun.spawn(argv, { cwd: repository, stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  if ((await child.exited) !== 0) throw new Error("the image was not built");
  const isos = readdirSync(folder).filter((name) => name.endsWith(".iso"));
  const newest = isos.sort((a, b) => statSync(join(folder, b)).mtimeMs - statSync(join(folder, a)).mtimeMs)[0];
  if (newest === undefined) throw new Error(`there is no ISO in ${folder}`);
  return join(folder, newest);
}

async function up(): Promise<void> {
  const present = runningMachine();
  if (present !== undefined) {
    say("it runs already; ./dev up --stop ends it");
    return printNext(present);
  }
  stopMachine();
  const iso = await buildIso();
  say("booting it on a virtual machine: one empty system disk, two empty data disks");
  // Until this program ends, which is when the node is in service.
  await serveTime();
  for (let tries = 1; ; tries += 1) {
    const flaw = Promise.withResolvers<never>();
    // It may come when nobody waits any more.
    flaw.promise.catch(() => undefined);
    try {
      return await Promise.race([bringUp(iso, () => flaw.reject(new EmulatorFlaw())), flaw.promise]);
    } catch (error) {
      if (!(error instanceof EmulatorFlaw) || tries === 3) throw error;
      say(`${EMULATOR_FLAW_SAID}; a new machine`);
      stopMachine();
    }
  }
}

class EmulatorFlaw extends Error {
  override readonly name = "EmulatorFlaw";
}

/** One reader at a time: ./dev console wants the line. What went wrong is told with the end of the console. */
async function watching<T>({ serial, qmp }: Started, work: (lastLine: () => string) => Promise<T>): Promise<T> {
  try {
    return await work(() => serial.tail(1).trim());
  } catch (error) {
    process.stderr.write(`\nthe last lines of its console:\n${serial.tail(30)}\n\n`);
    throw error;
  } finally {
    serial.close();
    qmp.close();
  }
}

async function bringUp(iso: string, onEmulatorFlaw: () => void): Promise<void> {
  const installing = await startMachine(iso, "install", onEmulatorFlaw);
  await watching(installing, async (lastLine) => {
    const { serial, qmp } = installing;
    const reboot = qmp.waitEvent(
      ({ event, data }) => event === "SHUTDOWN" && data["reason"] === "guest-reset",
      1_200_000,
    );
    // The console tells a failure at once; without this the wait would last to its end.
    const failed = serial.expect(/^error: (.*)/m, 1_200_000).then(([line]) => Promise.reject(new Error(line)));
    const installed = Promise.race([reboot, failed]);
    await waitFor("the installation onto the system disk, and its reboot", 1200, installed, lastLine);
    failed.catch(() => undefined);
  });
  say("installed; it boots from its disk");
  await ended(installing.machine);
  const started = await startMachine(iso, "run", onEmulatorFlaw);
  const { machine, serial } = started;
  await watching(started, async (lastLine) => {
    const limitMs = 600_000;
    // The whole line: it appears once the machine has an address, so that a claim can reach it.
    const line = /claim with: cctl enroll \S+ --code (\S+) --fingerprint (SHA256:[A-Za-z0-9+/]{43})/;
    const what = "an address and the claim code on the serial console";
    const shown = await waitFor(what, limitMs / 1000, serial.expect(line, limitMs), lastLine);
    const [, code = "", fingerprint = ""] = shown;
    say(`read from the console: ${code}, ${fingerprint}`);
    await claim(machine, code, fingerprint);
    await waitFor("the bootstrap: disks, RAID, WireGuard, k0s", 1200, inService(1_200_000), lastLine);
  });
  say("the node is in service");
  await printNext(machine);
}

async function claim({ apiPort }: Machine, code: string, fingerprint: string): Promise<void> {
  const address = `127.0.0.1:${apiPort}`;
  await must([cctl, "pki", "init", "--name", "dev"]);
  say(`claiming it: cctl enroll ${address}`);
  const argv = [cctl, "enroll", address, "--code", code, "--fingerprint", fingerprint, "--name", "node1", "--yes"];
  for (let tries = 1; ; tries += 1) {
    const { status } = await run(argv);
    if (status === 0) return;
    // Not reachable: without KVM and beside other work a machine can be that slow.
    if (status !== 3 || tries === 5) throw new Error(`cctl enroll exited with ${status}`);
    say("it is not reachable yet; once more");
  }
}

/** Why the bootstrap failed, when it did: nothing comes of waiting then. */
async function failure(): Promise<string | undefined> {
  const ran = await run([cctl, "operations", "node1", "--output", "json"], "quiet");
  if (ran.status !== 0) return undefined;
  const [newest] = (JSON.parse(ran.out) as OperationsAnswer).operations;
  return newest?.phase === "failed" ? (newest.failureReason ?? "no reason given") : undefined;
}

async function inService(limitMs: number): Promise<void> {
  const untilMs = performance.now() + limitMs;
  let shown = "";
  for (;;) {
    const ran = await run([cctl, "status", "node1", "--output", "json"], "quiet");
    if (ran.status === 0) {
      const node = JSON.parse(ran.out) as NodeAnswer;
      if (node.bootstrapped && node.phase === "in-service") return;
      const { operation } = node;
      const doing = operation?.message ?? operation?.step ?? node.phase;
      if (doing !== shown) say(doing);
      shown = doing;
      const reason = operation === undefined ? await failure() : undefined;
      if (reason !== undefined) throw new Error(`the bootstrap failed: ${reason}`);
    }
    if (performance.now() > untilMs) throw new Error(`it is not in service after ${limitMs / 1000} s`);
    // Each answer costs the machine what it needs for its work.
    await Bun.sleep(4_000);
  }
}

async function printNext(machine: Machine): Promise<void> {
  const status = await run([cctl, "status", "node1"]);
  const short = relative(process.cwd(), cctl);
  process.stdout.write(`\n${status.out}
k0s on this machine is a STAND-IN for tests: it is not Kubernetes.

Next:
  export CORIUM_DIR=${store}
  ${short} status node1
  ${short} operations node1
  ${short} diff node1 --file ${relative(process.cwd(), join(folder, "node.yaml"))}
  ./dev console          its serial console (leave with ctrl-])
  ./dev up --stop        end it

Its API answers at 127.0.0.1:${machine.apiPort}; process ${machine.pid}.
`);
}

async function main(mode: string | undefined): Promise<number> {
  if (mode === "--stop") {
    process.stderr.write(stopMachine() ? "stopped\n" : "nothing runs\n");
    return 0;
  }
  if (mode === "--console") {
    const machine = runningMachine();
    if (machine === undefined) {
      process.stderr.write("nothing runs: ./dev up\n");
      return 1;
    }
    await attachConsole(machine);
    return 0;
  }
  if (mode !== undefined) {
    process.stderr.write("usage: bun test/qemu/up.ts [--stop | --console]\n");
    return 2;
  }
  try {
    await up();
    return 0;
  } catch (error) {
    say(`failed: ${error instanceof Error ? error.message : String(error)}`);
    if (existsSync(join(folder, "console.log"))) say(`its whole console: ${join(folder, "console.log")}`);
    stopMachine();
    rmSync(store, { recursive: true, force: true });
    return 1;
  }
}

process.exit(await main(process.argv[2]));
