/** The status socket: both ends. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname } from "node:path";
import { configYaml } from "./config.ts";
import { STATUS_SOCKET } from "./flag-sets.ts";
import { parseFlags, type FlagSpec } from "./flags.ts";
import { fault, rooted, SimError } from "./stand-in.ts";

export interface Status {
  readonly Version: string;
  readonly Pid: number;
  readonly PPid: number;
  readonly Role: string;
  readonly SysInit: string;
  readonly StubFile: string;
  readonly Output: string;
  readonly Workloads: boolean;
  readonly SingleNode: boolean;
  readonly Args: readonly string[];
  readonly WorkerToAPIConnectionStatus: { readonly Message: string; readonly Success: boolean };
  readonly ClusterConfig: unknown;
  readonly K0sVars: unknown;
}

const FLAGS: readonly FlagSpec[] = [
  STATUS_SOCKET,
  { name: "out", short: "o", type: "string", help: "sets type of output to json or yaml" },
];

const errnoText: Readonly<Record<string, string>> = {
  ENOENT: "no such file or directory",
  ECONNREFUSED: "connection refused",
  EACCES: "permission denied",
};

/** Throws with Go's text when nothing listens. */
export async function askSocket(path: string, resource: string): Promise<unknown> {
  const socket = rooted(path);
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const probe = createConnection(socket);
  probe.once("connect", () => {
    resolve(undefined);
  });
  probe.once("error", (error: NodeJS.ErrnoException) => {
    resolve(errnoText[error.code ?? ""] ?? error.message);
  });
  const refused = await promise;
  probe.destroy();
  if (refused !== undefined)
    throw new SimError(
      `status: can't get "${resource}" via "${path}": Get "http://localhost/${resource}": dial unix ${path}: connect: ${refused}`,
    );
  const response = await fetch(`http://localhost/${resource}`, { unix: socket, signal: AbortSignal.timeout(300_000) });
  return await response.json();
}

export const isRunning = (path = "/run/k0s/status.sock"): Promise<boolean> =>
  askSocket(path, "live").then(
    () => true,
    () => false,
  );

export async function statusCommand(argv: readonly string[]): Promise<string> {
  const components = argv[0] === "components";
  const parsed = parseFlags(FLAGS, components ? argv.slice(1) : argv);
  if (components) {
    process.stderr.write("WARNING: components command has no backward compatibility\n");
    return configYaml(await askSocket(parsed.text("status-socket"), "components"));
  }
  const status = (await askSocket(parsed.text("status-socket"), "status")) as Status;
  if (parsed.text("out") === "json") return `${JSON.stringify(status, null, 3)}\n`;
  if (parsed.text("out") === "yaml") return configYaml(status);
  const lines = [`Version: ${status.Version}`, `Process ID: ${status.Pid}`, `Role: ${status.Role}`];
  lines.push(`Workloads: ${status.Workloads}`, `SingleNode: ${status.SingleNode}`);
  if (status.Workloads)
    lines.push(
      `Kube-api probing successful: ${status.WorkerToAPIConnectionStatus.Success}`,
      `Kube-api probing last error: ${status.WorkerToAPIConnectionStatus.Message}`,
    );
  return `${lines.join("\n")}\n`;
}

/** `status` may take its time: with workloads k0s waits for the kubelet's kubeconfig. */
export function serveStatus(path: string, status: () => Promise<Status>): { readonly stop: () => void } {
  const socket = rooted(path);
  mkdirSync(dirname(socket), { recursive: true });
  if (existsSync(socket)) rmSync(socket);
  const server = Bun.serve({
    unix: socket,
    fetch: async (request) => {
      const resource = new URL(request.url).pathname.slice(1);
      if (resource === "live") return Response.json({});
      if (resource === "components") return Response.json({ healthy: true });
      if (fault("hang-status") !== undefined) return new Promise<Response>(() => undefined);
      return Response.json(await status());
    },
  });
  return {
    stop: () => {
      void server.stop(true);
      rmSync(socket, { force: true });
    },
  };
}
