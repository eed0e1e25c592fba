/** The command line of the stand-in. */
// Here, as the bundle runs it after the certificates' library otherwise.
import "reflect-metadata";
import { configYaml, loadConfig } from "./config.ts";
import { CONFIG, CONTROLLER, FEATURE_GATES, INSTALL, WORKER } from "./flag-sets.ts";
import { helpText, parseFlags, type FlagSpec } from "./flags.ts";
import { install, systemctl, unitName, unitPath } from "./install.ts";
import { BANNER, recordCall, rooted, SIM_VERSION, SimError } from "./stand-in.ts";
import { statusCommand } from "./status.ts";
import { existsSync } from "node:fs";

// It was for the runtime, not for what this starts.
delete process.env["BUN_BE_BUN"];

const HELP = `${BANNER}

Usage:
  k0s [command]

Available Commands:
  airgap      Tooling for airgapped installations
  config      Configuration related sub-commands
  controller  Run controller
  etcd        Manage etcd cluster
  install     Install k0s on a brand-new system. Must be run as root (or with sudo)
  kubeconfig  Create a kubeconfig file for a specified user
  kubectl     kubectl controls the Kubernetes cluster manager
  reset       Uninstall k0s. Must be run as root (or with sudo)
  start       Start the k0s service configured on this host. Must be run as root (or with sudo)
  status      Get k0s instance status information
  stop        Stop the k0s service configured on this host. Must be run as root (or with sudo)
  sysinfo     Display system information
  token       Manage join tokens
  version     Print the k0s version
  worker      Run worker
`;

const out = (text: string): void => {
  process.stdout.write(text);
};

const wantsHelp = (argv: readonly string[]): boolean => argv.includes("--help") || argv.includes("-h");

async function configCommand(argv: readonly string[]): Promise<void> {
  const [verb, ...rest] = argv;
  if (verb === "create") {
    parseFlags([{ name: "include-images", type: "bool", help: "include the images" }], rest);
    return out(configYaml(await loadConfig({ path: "", isDefaults: true })));
  }
  if (verb === "validate") return await validate(rest);
  if (verb === undefined) return out(`Usage:\n  k0s config [create|edit|status|validate]\n`);
  throw new SimError(`unknown command "${verb}" for "k0s config"`);
}

/** Silent when all is well. */
async function validate(argv: readonly string[]): Promise<void> {
  const parsed = parseFlags([CONFIG, FEATURE_GATES], argv);
  await loadConfig({ path: parsed.text("config"), featureGates: parsed.text("feature-gates") });
}

function version(argv: readonly string[]): void {
  const flags: readonly FlagSpec[] = [
    { name: "all", short: "a", type: "bool", help: "use to print all k0s version info" },
    { name: "json", short: "j", type: "bool", help: "use to print all k0s version info in json" },
  ];
  const parsed = parseFlags(flags, argv);
  const all = {
    k0s: SIM_VERSION,
    runc: "1.4.3",
    containerd: "2.3.3",
    kubernetes: "1.36.4",
    kine: "0.16.3",
    etcd: "3.6.14",
    konnectivity: "0.36.0",
  };
  if (parsed.isSet("json")) return out(`${JSON.stringify(all, null, 2)}\n`);
  if (!parsed.isSet("all")) return out(`${SIM_VERSION}\n`);
  out(
    Object.entries(all)
      .map(([name, value]) => `${name}: ${value}\n`)
      .join(""),
  );
}

/** A failed unit is refused by both; neither waits for more than systemctl. */
async function service(verb: "start" | "stop"): Promise<void> {
  const role = (["controller", "worker"] as const).find((each) => existsSync(rooted(unitPath(each))));
  if (role === undefined) throw new SimError("k0s has not been installed as a service");
  const state = await systemctl("show", "--property=ActiveState", "--value", unitName(role));
  if (state === "failed") throw new SimError("service in failed state");
  if (verb === "start" && state === "active") throw new SimError("already running");
  if (verb === "stop" && state === "inactive") throw new SimError("already stopped");
  await systemctl(verb, unitName(role));
}

async function main(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  const sub = rest[0] ?? "";
  switch (command) {
    case undefined:
    case "help":
    case "--help":
    case "-h":
      out(HELP);
      return 0;
    case "version":
      version(rest);
      return 0;
    case "config":
      await configCommand(rest);
      return 0;
    case "validate":
      await validate(rest.slice(1));
      return 0;
    case "status":
      out(await statusCommand(rest));
      return 0;
    case "install":
      if (sub !== "controller" && sub !== "worker") {
        if (sub !== "" && !sub.startsWith("-")) throw new SimError(`unknown command "${sub}" for "k0s install"`);
        out(`${BANNER}\n\nUsage:\n  k0s install [controller|worker]\n`);
      } else if (wantsHelp(rest))
        out(helpText(`k0s install ${sub} [flags]`, [...(sub === "controller" ? CONTROLLER : WORKER), ...INSTALL]));
      else await install(sub, rest.slice(1));
      return 0;
    case "start":
    case "stop":
      await service(command);
      return 0;
    case "controller":
      if (wantsHelp(rest)) out(helpText("k0s controller [join-token] [flags]", CONTROLLER));
      else await (await import("./controller.ts")).runController(rest);
      return 0;
    case "worker":
      if (wantsHelp(rest)) out(helpText("k0s worker [join-token] [flags]", WORKER));
      else await (await import("./worker.ts")).runWorker(rest);
      return 0;
    case "token":
      if (sub === "") out(`${BANNER}\n\nUsage:\n  k0s token [create|invalidate|list|pre-shared]\n`);
      else out(await (await import("./token.ts")).tokenCommand(rest));
      return 0;
    case "kubectl": {
      const result = await (await import("./kubectl.ts")).kubectlCommand(rest);
      out(result.out);
      process.stderr.write(result.err);
      return result.exitCode;
    }
    case "kubeconfig":
      if (sub === "") out(`${BANNER}\n\nUsage:\n  k0s kubeconfig [admin|create]\n`);
      else out(await (await import("./kubeconfig.ts")).kubeconfigCommand(rest));
      return 0;
    case "etcd":
      if (sub === "") out(`${BANNER}\n\nUsage:\n  k0s etcd [leave|member-list|member-update]\n`);
      else out(await (await import("./etcd.ts")).etcdCommand(rest));
      return 0;
    case "sysinfo": {
      const { sysinfoCommand } = await import("./sysinfo.ts");
      const result = sysinfoCommand(rest);
      out(result.out);
      if (result.isFailed) throw new SimError("sysinfo failed");
      return 0;
    }
    case "reset":
      await (await import("./reset.ts")).resetCommand(rest);
      return 0;
    default:
      throw new SimError(`unknown command "${command}" for "k0s"`);
  }
}

/** Not awaited at the top: byte code is made of no such module. */
async function runAndExit(argv: readonly string[]): Promise<never> {
  try {
    process.exitCode = await main(argv);
  } catch (error) {
    if (error instanceof SimError) {
      process.stderr.write(`Error: ${error.message}\n`);
      process.exit(1);
    }
    process.stderr.write(`panic: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(2);
  }
  process.exit();
}

const argv = process.argv.slice(2);
recordCall(argv);
void runAndExit(argv);
