/**
 * `corium bootstrap [--dry-run] [--config FILE] [--state-dir DIR]`: first boot from disk, installation from a live
 * system. A dry run prints plan, programs and files, resolves no secret and changes nothing.
 */
import { parseArgs } from "node:util";
import type { Source } from "../config/source.ts";
import type { Command, CommandIo } from "../kit/command.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { State } from "../state/open.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";
import { findDocument } from "../config/driver.ts";
import { readInventory } from "../disks/driver.ts";
import { diskExecutors } from "../disks/steps/driver.ts";
import { realHost } from "../host/real.ts";
import { k0sExecutors } from "../k0s/driver.ts";
import { formatError } from "../kit/app-error.ts";
import { nodePaths } from "../kit/paths.ts";
import { version } from "../kit/version.ts";
import { installExecutors } from "../provision/install/driver.ts";
import { seedReader } from "../provision/seed/driver.ts";
import { nodeExecutors } from "../provision/steps.ts";
import { storageExecutors } from "../provision/storage/driver.ts";
import { memoryState, openState } from "../state/open.ts";
import { wireguardExecutors } from "../wireguard/driver.ts";
import { bootstrap } from "./bootstrap.ts";
import { dryRun } from "./dry-run.ts";
import { createReporter } from "./reporter.ts";
import { sha256Of } from "../kit/sha256.ts";

const usage = "usage: corium bootstrap [--dry-run [--config FILE]] [--state-dir DIR] [--run-dir DIR]\n";

export const bootstrapCommand: Command = async (argv, io) => {
  const options = readOptions(argv);
  if (options === undefined) {
    io.err(usage);
    return 2;
  }
  const paths = nodePaths(options.stateDir, options.runDir);
  const plain = realHost();
  const boot = await readBootFacts(plain, paths);
  // Only what boots from disk keeps a part of /etc.
  const host = boot.mode === "disk" ? realHost({ keptEtc: paths.keptEtc }) : plain;
  const log = (line: string): void => io.err(`${line}\n`);
  const reporter = createReporter(host.files, paths.runDir, boot.mode === "live" ? "install" : "bootstrap", log);
  const compose = async (state: State, find: () => Promise<Source>): Promise<BootstrapServices> => ({
    host,
    state,
    paths,
    version,
    boot,
    reporter,
    cmdline: await readCmdline(host),
    findDocument: find,
    readInventory: () => readInventory(host, boot),
    executors: (ports) => ({
      ...nodeExecutors(ports),
      ...storageExecutors,
      ...wireguardExecutors,
      ...k0sExecutors,
    }),
    installExecutors: (handover) => ({ ...installExecutors(handover), ...diskExecutors }),
    signal: io.signal,
  });
  // A dry run by hand may go on beside the service.
  const folder = `${paths.runDir}/seed/${options.isDry ? "dry-run" : "bootstrap"}`;
  const readSeeds = seedReader(host, { boot, folder });
  const find = async (): Promise<Source> =>
    findDocument(host, { paths, boot, cmdline: await readCmdline(host), readSeeds });
  if (options.isDry) {
    const { config } = options;
    // A machine that never was a node has no database, and a dry run makes none.
    const existing = await host.files.stat(paths.database);
    const state =
      existing.ok && existing.value !== null ? openState(paths) : { ok: true as const, value: memoryState() };
    if (!state.ok) return complain(io, formatError(state.error));
    const services = await compose(state.value, config === undefined ? find : () => readGiven(host, config));
    return dryRun(services, io);
  }
  const state = openState(paths);
  if (!state.ok) {
    reporter.say({ state: "failed", error: formatError(state.error).split("\n") });
    await reporter.flush();
    return 1;
  }
  try {
    return await bootstrap(await compose(state.value, find));
  } finally {
    state.value.close();
  }
};

interface Options {
  readonly isDry: boolean;
  readonly config?: string;
  readonly stateDir?: string;
  readonly runDir?: string;
}

function readOptions(argv: readonly string[]): Options | undefined {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        "dry-run": { type: "boolean" },
        config: { type: "string" },
        "state-dir": { type: "string" },
        "run-dir": { type: "string" },
      },
    });
    const { config, "state-dir": stateDir, "run-dir": runDir } = values;
    const isDry = values["dry-run"] === true;
    // A node acts on its own sources only; what is given by hand can merely be looked at.
    if (config !== undefined && !isDry) return undefined;
    return {
      isDry,
      ...(config === undefined ? {} : { config }),
      ...(stateDir === undefined ? {} : { stateDir }),
      ...(runDir === undefined ? {} : { runDir }),
    };
  } catch {
    return undefined;
  }
}

/** Without the file this is no Corium system, or one whose initramfs failed: then nothing is installed. */
export async function readBootFacts(host: Host, paths: Paths): Promise<BootFacts> {
  const text = await host.files.readText(paths.bootFacts);
  if (!text.ok) return { mode: "disk" };
  try {
    return JSON.parse(text.value) as BootFacts;
  } catch {
    return { mode: "disk", problems: [`${paths.bootFacts} is not JSON`] };
  }
}

async function readCmdline(host: Host): Promise<string> {
  const text = await host.files.readText("/proc/cmdline");
  return text.ok ? text.value.trim() : "";
}

async function readGiven(host: Host, path: string): Promise<Source> {
  const text = await host.files.readText(path, { maxBytes: 2_097_152 });
  if (!text.ok) return { kind: "failed", error: text.error, retryable: false, notes: [] };
  const sha256 = sha256Of(text.value);
  return { kind: "found", text: text.value, origin: path, sha256, pinned: false, notes: [] };
}

function complain(io: CommandIo, text: string): number {
  io.err(`corium: ${text}\n`);
  return 1;
}
