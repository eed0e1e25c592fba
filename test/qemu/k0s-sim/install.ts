/** `k0s install`: checks, users, the unit. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { loadConfig, textAt } from "./config.ts";
import { CONTROLLER, INSTALL, WORKER } from "./flag-sets.ts";
import { parseFlags, type Parsed } from "./flags.ts";
import { run } from "./programs.ts";
import { fault, log, programPath, rooted, simRoot, SimError } from "./stand-in.ts";

export type Role = "controller" | "worker";

const ABSOLUTE = new Set(["config", "data-dir", "kubelet-root-dir", "token-file"]);
const NOT_IN_UNIT = new Set(INSTALL.map((spec) => spec.name));

export const unitName = (role: Role): string => `k0s${role}.service`;
export const unitPath = (role: Role): string => `/etc/systemd/system/${unitName(role)}`;

/** Alphabetical, `--name=value`, only what was given. */
export function unitArguments(role: Role, parsed: Parsed): readonly string[] {
  const flags = [...parsed.given]
    .filter(([name]) => !NOT_IN_UNIT.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `--${name}=${ABSOLUTE.has(name) ? resolve(value) : value}`);
  return [role, ...flags];
}

/** The template of the service library; of special characters only spaces are escaped, as upstream. */
export function unitText(argv: readonly string[], environment: readonly string[]): string {
  const program = programPath();
  const command = [program, ...argv].map((word) => word.replaceAll(" ", "\\x20")).join(" ");
  return `[Unit]
Description=k0s - Zero Friction Kubernetes
Documentation=https://docs.k0sproject.io
ConditionFileIsExecutable=${program}

After=network-online.target
Wants=network-online.target

[Service]
StartLimitInterval=5
StartLimitBurst=10
ExecStart=${command}
${environment.map((pair) => `Environment="${pair}"\n`).join("")}
RestartSec=10
Delegate=yes
KillMode=process
LimitCORE=infinity
TasksMax=infinity
TimeoutStartSec=0
LimitNOFILE=999999
Restart=always

[Install]
WantedBy=multi-user.target
`;
}

export async function install(role: Role, argv: readonly string[]): Promise<void> {
  const parsed = parseFlags([...(role === "controller" ? CONTROLLER : WORKER), ...INSTALL], argv);
  const extra = parsed.positional[0];
  if (extra !== undefined) throw new SimError(`unknown command "${extra}" for "k0s install ${role}"`);
  if (process.getuid?.() !== 0 && simRoot === "") throw new SimError("this command must be run as root");
  if (fault("install-fails") !== undefined) throw new SimError("failed to install service: the test wants it so");
  if (role === "controller") {
    const config = await loadConfig({
      path: parsed.text("config"),
      isSingle: parsed.isSet("single"),
      featureGates: parsed.text("feature-gates"),
    });
    await createUsers(config.spec, parsed.text("data-dir"));
  }
  const path = rooted(unitPath(role));
  const failed = (reason: string): SimError => new SimError(`failed to install ${role} service: ${reason}`);
  if (parsed.isSet("force")) {
    if (existsSync(path)) await uninstallUnit(role);
    else log("warning", "failed to uninstall service: the service is not installed");
  } else if (existsSync(path)) throw failed(`failed to install service: Init already exists: ${unitPath(role)}`);
  const environment = parsed
    .list("env")
    .map((pair) => (pair.includes("=") ? pair : `${pair}=${process.env[pair] ?? ""}`));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, unitText(unitArguments(role, parsed), environment), { mode: 0o644 });
  await systemctl("enable", unitName(role));
  await systemctl("daemon-reload");
  if (parsed.isSet("start")) await systemctl(parsed.isSet("force") ? "restart" : "start", unitName(role));
}

export async function uninstallUnit(role: Role): Promise<void> {
  await systemctl("disable", unitName(role));
  rmSync(rooted(unitPath(role)), { force: true });
  await systemctl("daemon-reload");
}

export async function systemctl(...argv: readonly string[]): Promise<string> {
  if (simRoot !== "") return "";
  const result = await run(["systemctl", ...argv]);
  if (result.exitCode !== 0)
    throw new SimError(`"systemctl" failed: exit status ${result.exitCode}: ${result.stderr.trim()}`);
  return result.stdout.trim();
}

/** Home is the data folder; users that exist are left as they are. There never is one for keepalived. */
async function createUsers(spec: unknown, dataDir: string): Promise<void> {
  if (simRoot !== "") return;
  const known = new Set(
    readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => line.split(":")[0]),
  );
  for (const key of ["etcdUser", "kineUser", "konnectivityUser", "kubeAPIserverUser", "kubeSchedulerUser"]) {
    const name = textAt(spec, "installConfig", "users", key);
    if (name === "" || known.has(name)) continue;
    known.add(name);
    const argv = ["useradd", "--home", dataDir, "--shell", "/usr/sbin/nologin", "--system", "--no-create-home", name];
    const result = await run(argv);
    if (result.exitCode !== 0) throw new SimError(`failed to create user "${name}": ${result.stderr.trim()}`);
  }
}
