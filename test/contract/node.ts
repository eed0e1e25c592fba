/**
 * A node in service over the k0s under test: the gate, the hand-over and the database are the program's own, files and
 * programs are real below the folder that stands for `/`, and systemd is this process, which starts and stops k0s.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ApplyDependencies, ServiceOutcome } from "../../apply/service/model.ts";
import { serveApply } from "../../apply/service/driver.ts";
import { parseDocument } from "../../config/load.ts";
import { realFiles } from "../../host/files.ts";
import { realHost } from "../../host/real.ts";
import type { ExecResult, Files, Host, Systemd } from "../../kit/ports.ts";
import { ok } from "../../kit/result.ts";
import { renderNode } from "../../provision/render.ts";
import { openState, type State } from "../../state/open.ts";
import { recordBaseline } from "../support/in-service.ts";
import type { Program, Running } from "./program.ts";

export interface ContractNode {
  readonly host: Host;
  readonly state: State;
  readonly dependencies: ApplyDependencies;
  apply(
    document: string,
    more?: { readonly acknowledge?: boolean; readonly isDryRun?: boolean },
  ): Promise<ServiceOutcome>;
  close(): Promise<void>;
}

/** `flags`: of `k0s controller`. The node runs `document` when this returns. */
export async function openNode(k0s: Program, document: string, flags: readonly string[]): Promise<ContractNode> {
  const opened = openState({ database: join(k0s.directory, "corium.db"), marker: join(k0s.directory, "marker") });
  if (!opened.ok) throw new Error(opened.error.message);
  const state = opened.value;
  const parsed = parseDocument(document, { nowMs: 0 });
  if (parsed.document === undefined) throw new Error(JSON.stringify(parsed.findings));
  for (const { path, content } of renderNode({
    document: parsed.document,
    hostname: "n1",
    machineId: "m",
    addresses: {},
  }).files) {
    k0s.write(path, content);
  }
  k0s.write("/etc/corium/config.yaml", document);
  mkdirSync(k0s.host("/run/corium"), { recursive: true });
  recordBaseline(state, document);
  const unit = unitOf(k0s, ["controller", "--config", "/etc/k0s/k0s.yaml", ...flags]);
  const real = realHost();
  const host: Host = { ...real, files: filesBelow(k0s), systemd: unit.systemd, exec: (request) => run(k0s, request) };
  const dependencies: ApplyDependencies = {
    host,
    paths: { stateDir: "/var/lib/corium", config: "/etc/corium/config.yaml" },
    state,
    version: "1",
    parse: (text, nowMs) => parseDocument(text, { nowMs }),
  };
  await unit.systemd.start("k0scontroller.service");
  return {
    host,
    state,
    dependencies,
    apply: (text, more = {}) =>
      serveApply(dependencies, {
        document: text,
        requester: { kind: "local" },
        acknowledge: false,
        isDryRun: false,
        ...more,
      }),
    async close() {
      await unit.systemd.stop("k0scontroller.service");
      state.close();
    },
  };
}

/** The one program that these need. */
async function run(k0s: Program, { argv, timeoutMs = 60_000 }: Parameters<Host["exec"]>[0]): Promise<ExecResult> {
  if (argv[0] !== "/usr/bin/k0s") throw new Error(`${argv.join(" ")} would run on this machine`);
  const beganMs = performance.now();
  const { exitCode, stdout, stderr } = await k0s.run(argv.slice(1), { timeoutMs });
  const durationMs = performance.now() - beganMs;
  const timedOut = durationMs >= timeoutMs;
  const ended = { exitCode: timedOut ? null : exitCode, signal: timedOut ? "SIGTERM" : null, timedOut };
  return { argv, stdout, stderr, truncated: false, durationMs, ...ended };
}

function filesBelow(k0s: Program): Files {
  const real = realFiles();
  const at = (path: string): string => k0s.host(path);
  return {
    read: (path, more) => real.read(at(path), more),
    readText: (path, more) => real.readText(at(path), more),
    write: (path, content, how) => {
      mkdirSync(dirname(at(path)), { recursive: true });
      return real.write(at(path), content, how);
    },
    remove: (path, more) => real.remove(at(path), more),
    rename: (from, to) => real.rename(at(from), at(to)),
    mkdir: (path, how) => real.mkdir(at(path), how),
    list: (path) => real.list(at(path)),
    stat: (path, more) => real.stat(at(path), more),
    realpath: (path) => real.realpath(at(path)),
    readlink: (path) => real.readlink(at(path)),
    symlink: (target, path) => real.symlink(target, at(path)),
    keep: async () => ok(undefined),
  };
}

function unitOf(k0s: Program, argv: readonly string[]): { readonly systemd: Systemd } {
  let running: Running | undefined;
  const start = async () => {
    running ??= k0s.start(argv);
    return ok(undefined);
  };
  const stop = async () => {
    await running?.stop();
    running = undefined;
    return ok(undefined);
  };
  const nothing = async () => ok(undefined);
  const systemd: Systemd = {
    start,
    stop,
    restart: async () => {
      await stop();
      return start();
    },
    daemonReload: nothing,
    enable: nothing,
    disable: nothing,
    resetFailed: nothing,
    status: async () =>
      ok({
        loadState: "loaded",
        activeState: running === undefined ? "inactive" : "active",
        subState: running === undefined ? "dead" : "running",
        unitFileState: "enabled",
        restarts: 0,
        result: "success",
        mainPid: running?.pid ?? 0,
      }),
    journalTail: async (_unit, lines) => ok(((await running?.log()) ?? "").trim().split("\n").slice(-lines)),
  };
  return { systemd };
}
