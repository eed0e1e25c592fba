/** Programs on block devices, and filesystems that are mounted for a moment only. */
import type { AppError } from "../../../kit/app-error.ts";
import type { ExecResult, Host } from "../../../kit/ports.ts";
import type { Result } from "../../../kit/result.ts";
import type { StepState } from "../../../kit/step.ts";
import { fail } from "../../../kit/app-error.ts";
import { ok } from "../../../kit/result.ts";
import { mountRoot } from "../remains/driver.ts";

export const minuteMs = 60_000;
const UNMOUNT_ATTEMPTS = 15;

/** FAT knows no x bits; the kernel refuses a chmod that would take them away. */
export const vfatMode = 0o755;

/** iflag=fullblock: a pipe gives less than a block at a time. */
export const ddStdinArgv = (to: string): readonly string[] => [
  "dd",
  `of=${to}`,
  "bs=64K",
  "iflag=fullblock",
  "conv=notrunc,fsync",
  "status=none",
];

export const partitionPath = (partUuid: string): string => `/dev/disk/by-partuuid/${partUuid}`;

export async function tool(
  host: Host,
  argv: readonly string[],
  more: { readonly stdin?: string | Uint8Array; readonly timeoutMs?: number } = {},
): Promise<Result<void, AppError>> {
  const ran = await host.exec({ argv, ...more });
  return ran.exitCode === 0 ? ok(undefined) : fail("tool", `${argv[0]} failed: ${wordsOf(ran)}`);
}

function wordsOf(ran: ExecResult): string {
  if (ran.failure !== undefined) return ran.failure;
  if (ran.timedOut) return "it took too long";
  const last = ran.stderr.trim().split("\n").at(-1);
  return last === undefined || last === "" ? `exit status ${ran.exitCode}` : last;
}

export async function isEqual(host: Host, a: string, b: string, bytes?: number): Promise<boolean> {
  const limit = bytes === undefined ? [] : [`--bytes=${bytes}`];
  return (await host.exec({ argv: ["cmp", "--silent", ...limit, a, b], timeoutMs: 30 * minuteMs })).exitCode === 0;
}

/** For checks: what can't be mounted is not done. */
export async function whenMounted(
  host: Host,
  device: string,
  type: "ext4" | "vfat",
  look: (root: string) => Promise<boolean>,
): Promise<Result<StepState, AppError>> {
  const seen = await withMount(host, device, type, "ro", async (root) => ok(await look(root)));
  return ok(seen.ok && seen.value ? "done" : "todo");
}

/** Unmounted whatever happens in between; a mount that an earlier try left behind goes first. */
export async function withMount<T>(
  host: Host,
  device: string,
  type: "ext4" | "vfat",
  access: "ro" | "rw",
  work: (root: string) => Promise<Result<T, AppError>>,
): Promise<Result<T, AppError>> {
  const root = `${mountRoot}/${device.slice(device.lastIndexOf("/") + 1)}`;
  const folder = await tool(host, ["mkdir", "-p", root]);
  if (!folder.ok) return folder;
  await host.exec({ argv: ["umount", "--quiet", root] });
  const mounted = await tool(host, ["mount", "-t", type, "-o", access, device, root]);
  if (!mounted.ok) return mounted;
  const outcome = await work(root);
  const unmounted = await unmount(host, root);
  if (!outcome.ok) return outcome;
  if (!unmounted.ok) return unmounted;
  const flushed = await tool(host, ["blockdev", "--flushbufs", device]);
  return flushed.ok ? outcome : flushed;
}

/** A program that just ended, or a probe, may still have a file open; it lets go in a moment. */
async function unmount(host: Host, root: string): Promise<Result<void, AppError>> {
  for (let attempt = 1; ; attempt += 1) {
    const unmounted = await tool(host, ["umount", root], { timeoutMs: 10 * minuteMs });
    if (unmounted.ok || attempt === UNMOUNT_ATTEMPTS || !/busy/i.test(unmounted.error.message)) return unmounted;
    await host.clock.sleep(1_000);
  }
}

/** The links by PARTUUID are there only when udev has seen the new table. */
export async function settle(host: Host, path: string): Promise<Result<void, AppError>> {
  for (const argv of [
    ["blockdev", "--flushbufs", path],
    ["udevadm", "settle", "--timeout=60"],
  ]) {
    const done = await tool(host, argv, { timeoutMs: 2 * minuteMs });
    if (!done.ok) return done;
  }
  return ok(undefined);
}
