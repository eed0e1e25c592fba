/** Loop devices for tests: root on a kernel that has them, or a printed reason why not. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, openSync, readSync, closeSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface LoopDevice {
  readonly path: string;
  readonly file: string;
  /** SHA-256 of the whole device. */
  digest(): string;
  detach(): void;
}

const folder = mkdtempSync(join(tmpdir(), "corium-loop-"));
let count = 0;

export function sh(...argv: readonly string[]): string {
  const [program = "", ...rest] = argv;
  const result = spawnSync(program, rest, { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } });
  if (result.status !== 0) throw new Error(`${argv.join(" ")}: ${result.stderr}${result.error?.message ?? ""}`);
  return result.stdout.trim();
}

/** Why loop tests can't run here; undefined: they can. */
export function whyNoLoop(...tools: readonly string[]): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  const missing = ["losetup", "wipefs", "blkid", "lsblk", ...tools].filter((tool) => Bun.which(tool) === null);
  if (missing.length > 0) return `needs ${missing.join(", ")}`;
  try {
    attach(1).detach();
    return undefined;
  } catch (thrown) {
    return `no loop devices: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  }
}

export function attach(sizeMib: number, sectorBytes = 512): LoopDevice {
  const file = join(folder, `disk-${(count += 1)}.img`);
  writeFileSync(file, "");
  truncateSync(file, sizeMib * 1024 * 1024);
  return attachFile(file, sectorBytes);
}

/** The file goes with the device. */
export function attachFile(file: string, sectorBytes = 512): LoopDevice {
  const path = sh("losetup", "--find", "--show", "--partscan", "--sector-size", String(sectorBytes), file);
  return {
    path,
    file,
    digest: () => digest(path),
    detach() {
      spawnSync("losetup", ["-d", path]);
      rmSync(file, { force: true });
    },
  };
}

function digest(path: string): string {
  // Through the device, so that what is still in its page cache counts as written.
  const hash = createHash("sha256");
  const fd = openSync(path, "r");
  const chunk = new Uint8Array(1024 * 1024);
  for (let read = readSync(fd, chunk); read > 0; read = readSync(fd, chunk)) hash.update(chunk.subarray(0, read));
  closeSync(fd);
  return hash.digest("hex");
}
