/** `k0s reset`: takes k0s off the host, and fails as it fails. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadConfig } from "./config.ts";
import { CONFIG, DATA_DIR, DEBUG } from "./flag-sets.ts";
import { parseFlags } from "./flags.ts";
import { uninstallUnit, unitPath } from "./install.ts";
import { isAlive, readRuntime } from "./runtime.ts";
import { fault, log, rooted, simRoot, SimError } from "./stand-in.ts";
import { isRunning } from "./status.ts";

export async function resetCommand(argv: readonly string[]): Promise<void> {
  const flags = [
    DATA_DIR,
    CONFIG,
    { name: "kubelet-root-dir", type: "string", help: "kubelet root directory" } as const,
    { name: "cri-socket", type: "string", help: "container runtime socket to use" } as const,
    ...DEBUG,
  ];
  const parsed = parseFlags(flags, argv);
  if (process.getuid?.() !== 0 && simRoot === "") throw new SimError("this command must be run as root");
  if (isAlive(readRuntime().pid) || (await isRunning()))
    throw new SimError("another k0s process is still running, please stop k0s before reset");
  // A configuration that can't be read stops it.
  await loadConfig({ path: parsed.text("config") });
  const dataDir = rooted(resolve(parsed.text("data-dir")));
  const kubeletDir = parsed.text("kubelet-root-dir");
  const problems: string[] = [];
  for (const role of ["controller", "worker"] as const)
    if (existsSync(rooted(unitPath(role)))) await uninstallUnit(role);
  const folders = [dataDir, ...(kubeletDir === "" ? [] : [rooted(resolve(kubeletDir))])];
  for (const folder of folders) {
    const [busy] = mountsBelow(folder);
    // It goes down into mounts and deletes what is on them; only the mount point itself it can't.
    for (const point of busy === undefined ? [] : [...mountsBelow(folder)].toReversed()) deleteWithin(point);
    if (busy === undefined) rmSync(folder, { recursive: true, force: true });
    else problems.push(`failed to delete ${folder}: unlinkat ${busy}: device or resource busy`);
  }
  // The data folder goes first, with runc in it: what is left under /run/k0s can't be taken down any more.
  if (fault("reset-busy") !== undefined)
    problems.push("failed to delete /run/k0s: unlinkat /run/k0s/containerd: device or resource busy");
  else rmSync(rooted("/run/k0s"), { recursive: true, force: true });
  for (const file of ["10-kuberouter.conflist", "10-calico.conflist"])
    rmSync(rooted(`/etc/cni/net.d/${file}`), { force: true });
  if (problems.length > 0) throw new SimError(`errors received during clean-up: ${problems.join("\n")}`);
  log("info", "k0s cleanup operations done.");
  log("warning", "To ensure a full reset, a node reboot is recommended.");
}

function deleteWithin(folder: string): void {
  for (const name of readdirSync(folder)) {
    try {
      rmSync(join(folder, name), { recursive: true, force: true });
    } catch {
      // Another mount point: what was on it is gone already.
    }
  }
}

function mountsBelow(folder: string): readonly string[] {
  if (!existsSync("/proc/mounts")) return [];
  return readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => (line.split(" ")[1] ?? "").replaceAll("\\040", " "))
    .filter((point) => point === folder || point.startsWith(`${folder}/`));
}
