/**
 * A loop device whose every write is logged (test/qemu/harness/write-log.ts) without a virtual machine: it lies on a file
 * that QEMU's storage daemon shows by FUSE, which passes writes, flushes and discards on one by one.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LoopDevice } from "./loop-device.ts";
import { sh } from "./loop-device.ts";

export const whyNoLog = (): string | undefined => {
  if (Bun.which("qemu-storage-daemon") === null) return "needs qemu-storage-daemon";
  return existsSync("/dev/fuse") ? undefined : "needs /dev/fuse";
};

export interface LoggedDevice extends LoopDevice {
  /** Complete once the device is detached. */
  readonly log: string;
  drop(): void;
}

export async function attachLogged(sizeMib: number): Promise<LoggedDevice> {
  const folder = mkdtempSync(join(tmpdir(), "corium-logged-"));
  const [file, log, shown] = ["disk.raw", "writes.log", "shown"].map((name) => join(folder, name));
  if (file === undefined || log === undefined || shown === undefined) throw new Error("no folder");
  for (const path of [file, log, shown]) writeFileSync(path, "");
  truncateSync(file, sizeMib * 1024 * 1024);
  const nodes = [
    `driver=file,filename=${file},node-name=disk,discard=unmap`,
    `driver=file,filename=${log},node-name=log`,
    "driver=blklogwrites,node-name=logged,file=disk,log=log,log-sector-size=512,discard=unmap",
  ];
  const daemon = spawn(
    "qemu-storage-daemon",
    [
      ...nodes.flatMap((node) => ["--blockdev", node]),
      "--export",
      `type=fuse,id=shown,node-name=logged,mountpoint=${shown},writable=on,allow-other=off`,
    ],
    { stdio: "ignore" },
  );
  const ended = new Promise((resolve) => daemon.once("exit", resolve));
  // Until then it is the empty file beneath.
  for (let tries = 0; statSync(shown).size === 0; tries += 1) {
    if (tries > 300 || daemon.exitCode !== null) throw new Error("qemu-storage-daemon shows no file");
    await Bun.sleep(100);
  }
  const path = sh("losetup", "--find", "--show", "--partscan", shown);
  return {
    path,
    file,
    log,
    digest: () => "",
    detach: () => {
      spawnSync("losetup", ["-d", path]);
      daemon.kill("SIGTERM");
    },
    drop: () => {
      void ended.then(() => rmSync(folder, { recursive: true, force: true }));
    },
  };
}
