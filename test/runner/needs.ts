/**
 * What a test needs of the machine it runs on. A test that can't run carries its needs in its name, `[needs root,
 * mdadm]`; the runner prints them, and fails when the machine has all of them after all.
 */
import { test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";

const repository = join(import.meta.dir, "../..");

const PATH = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;

/** Words with a meaning of their own; any other need is a program. */
const special: Readonly<Record<string, () => boolean>> = {
  root: () => process.getuid?.() === 0,
  "../shared": () => existsSync(join(repository, "../shared")),
  systemd: () => existsSync("/run/systemd/system"),
  "loop devices": () =>
    process.getuid?.() === 0 &&
    Bun.which("losetup") !== null &&
    Bun.spawnSync(["losetup", "--find"], { stdout: "ignore", stderr: "ignore" }).exitCode === 0,
  "network namespaces": () => {
    if (process.getuid?.() !== 0 || Bun.which("ip", { PATH }) === null) return false;
    const name = `corium-${process.pid}`;
    const ip = (verb: string): number | null =>
      Bun.spawnSync(["ip", "netns", verb, name], { stdout: "ignore", stderr: "ignore" }).exitCode;
    return ip("add") === 0 && ip("del") === 0;
  },
  "/dev/fuse": () => existsSync("/dev/fuse"),
  /** Contract tests against a real k0s: K0S=/path. */
  "a real k0s": () => process.env["K0S"] !== undefined,
  "the stand-in": () => process.env["K0S"] === undefined,
};

export function isMet(need: string): boolean {
  return special[need]?.() ?? Bun.which(need, { PATH }) !== null;
}

/** The needs written in a test's name. */
export function needsIn(name: string): readonly string[] | undefined {
  const found = /\[needs ([^\]]+)\]/.exec(name)?.[1];
  return found?.split(",").map((need) => need.trim());
}

/** A test that is skipped, saying why, where one of its needs is not met. */
export function testNeeding(
  needs: readonly string[],
  name: string,
  run: () => void | Promise<void>,
  timeoutMs?: number,
): void {
  const missing = needs.filter((need) => !isMet(need));
  if (missing.length > 0) test.skip(`${name} [needs ${missing.join(", ")}]`, () => undefined);
  else test(name, run, timeoutMs);
}
