/** A TPM 2 of software for one start of a machine; its state in `directory` stays, as a real one's does. */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

export interface Tpm {
  readonly socket: string;
  /** It ends by itself with QEMU; this is for a QEMU that never came up. */
  stop(): void;
}

const STARTED_MS = 10_000;

/** Before each start of QEMU: it ends when that does. */
export async function startTpm(directory: string, run: string): Promise<Tpm> {
  // It changes its working directory: relative paths would be taken as from there.
  const state = resolve(directory);
  mkdirSync(state, { recursive: true });
  const socket = join(resolve(run), "swtpm.sock");
  const pidFile = join(resolve(run), "swtpm.pid");
  rmSync(socket, { force: true });
  const argv = ["swtpm", "socket", "--tpm2", "--tpmstate", `dir=${state}`, "--ctrl", `type=unixio,path=${socket}`];
  const swtpm = Bun.spawn([...argv, "--flags", "startup-clear", "--daemon", "--pid", `file=${pidFile}`], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [stderr, exitCode] = await Promise.all([swtpm.stderr.text(), swtpm.exited]);
  if (exitCode !== 0) throw new Error(`swtpm did not start: exit ${exitCode}\n${stderr}`);
  const deadline = performance.now() + STARTED_MS;
  while (!existsSync(socket) || !existsSync(pidFile)) {
    if (performance.now() > deadline) throw new Error("swtpm made no socket");
    await Bun.sleep(20);
  }
  const pid = Number(readFileSync(pidFile, "utf8").trim());
  return {
    socket,
    stop() {
      try {
        // Only while it still is that program.
        if (readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "swtpm") process.kill(pid, "SIGTERM");
      } catch {
        // It is gone.
      }
    },
  };
}
