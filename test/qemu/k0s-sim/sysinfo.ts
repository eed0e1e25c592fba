/** Checks of the host; those that reject also run at each start. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { DATA_DIR } from "./flag-sets.ts";
import { parseFlags, type FlagSpec } from "./flags.ts";
import { configYaml } from "./config.ts";
import { log, rooted, SimError } from "./stand-in.ts";

export interface Probe {
  readonly path: readonly string[];
  readonly displayName: string;
  readonly prop: string;
  readonly message: string;
  readonly category: "pass" | "warning" | "rejected" | "error";
}

interface Roles {
  readonly isController: boolean;
  readonly isWorker: boolean;
}

export function probes(roles: Roles): readonly Probe[] {
  const found: Probe[] = [];
  const add = (displayName: string, isFine: boolean, prop: string, bad: Probe["category"], message: string): void => {
    const path = [displayName.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")];
    found.push({ path, displayName, prop, message: isFine ? "" : message, category: isFine ? "pass" : bad });
  };
  const memoryMiB = Math.round(totalmem() / 1024 / 1024);
  const needMiB = roles.isController ? 1024 : 500;
  add("Total memory", memoryMiB >= needMiB, `${memoryMiB} MiB`, "warning", `${needMiB} MiB recommended`);
  const hosts = existsSync("/etc/hosts") ? readFileSync("/etc/hosts", "utf8") : "";
  add("Name resolution", /\slocalhost(?:\s|$)/m.test(hosts), "localhost", "error", "localhost is not in /etc/hosts");
  for (const name of ["modprobe", "mount", "umount"]) {
    const where = Bun.which(name, { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` });
    add(`Executable in PATH: ${name}`, where !== null, where ?? "", "warning", "not found");
  }
  const dropIns = rooted("/etc/k0s/containerd.d");
  for (const name of existsSync(dropIns) ? readdirSync(dropIns).filter((each) => each.endsWith(".toml")) : []) {
    const version = /^version\s*=\s*(\d+)/m.exec(readFileSync(`${dropIns}/${name}`, "utf8"))?.[1];
    add(
      `containerd config file ${name}`,
      version === "3",
      `version ${version ?? "?"}`,
      "rejected",
      "expected version 3",
    );
  }
  if (roles.isWorker) {
    add("/proc file system", existsSync("/proc/self"), "mounted", "rejected", "not mounted");
    const controllers = "/sys/fs/cgroup/cgroup.controllers";
    const isV2 = existsSync(controllers);
    add("Control Groups", isV2, isV2 ? "version 2" : "version 1", "rejected", "cgroup v1 is no longer supported");
    // cpuacct, devices and freezer are part of version 2 itself.
    const present = isV2 ? readFileSync(controllers, "utf8").trim().split(" ") : [];
    for (const name of ["cpu", "cpuset", "memory", "pids"])
      add(`cgroup controller "${name}"`, present.includes(name), "", "rejected", "not available");
  }
  return found;
}

export function preFlight(roles: Roles & { readonly isIgnored: boolean }): void {
  const bad = probes(roles).filter((probe) => probe.category === "rejected" || probe.category === "error");
  if (bad.length === 0) return;
  const text = `pre-flight checks failed: ${bad.map((probe) => `${probe.displayName}: ${probe.message}`).join(", ")}`;
  if (!roles.isIgnored) throw new SimError(text);
  log("warning", text);
}

const FLAGS: readonly FlagSpec[] = [
  { name: "controller", type: "bool", help: "Include controller-specific sysinfo", fallback: "true" },
  { name: "worker", type: "bool", help: "Include worker-specific sysinfo", fallback: "true" },
  { name: "output", short: "o", type: "string", help: "text, json or yaml", fallback: "text" },
  DATA_DIR,
];

export function sysinfoCommand(argv: readonly string[]): { readonly out: string; readonly isFailed: boolean } {
  const parsed = parseFlags(FLAGS, argv);
  const rows = probes({ isController: parsed.isSet("controller"), isWorker: parsed.isSet("worker") });
  const isFailed = rows.some((probe) => probe.category === "rejected" || probe.category === "error");
  const output = parsed.text("output");
  if (output === "json") return { out: `${JSON.stringify(rows, null, 2)}\n`, isFailed };
  if (output === "yaml") return { out: configYaml(rows), isFailed };
  const line = (probe: Probe): string =>
    `${probe.displayName}: ${probe.prop} (${probe.category}${probe.message === "" ? "" : `: ${probe.message}`})`;
  return { out: `${rows.map(line).join("\n")}\n`, isFailed };
}
