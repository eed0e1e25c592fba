/** `k0s worker`: runs until it is told to stop. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseKubeConfig, type KubeConfig } from "./api-client.ts";
import { guardStart, joinToken, prepareDataDir, untilTold } from "./controller.ts";
import { WORKER } from "./flag-sets.ts";
import { parseFlags, type Parsed } from "./flags.ts";
import { dropRuntime, writeRuntime } from "./runtime.ts";
import { BANNER, log, rooted, SIM_VERSION, SimError } from "./stand-in.ts";
import { serveStatus } from "./status.ts";
import { preFlight } from "./sysinfo.ts";
import { decodeToken } from "./token.ts";
import { startWorkload } from "./workload.ts";

export async function runWorker(argv: readonly string[]): Promise<void> {
  const parsed = parseFlags(WORKER, argv);
  log("info", `${BANNER} (${SIM_VERSION})`);
  await guardStart(parsed);
  preFlight({ isController: false, isWorker: true, isIgnored: parsed.isSet("ignore-pre-flight-checks") });
  const dataDir = rooted(resolve(parsed.text("data-dir")));
  prepareDataDir(dataDir);
  writeRuntime({ dataDir: resolve(parsed.text("data-dir")), configPath: "", pid: process.pid });
  const workload = await startWorkload({
    dataDir,
    parsed,
    kubeConfig: workerConfig(parsed, dataDir),
    isController: false,
    isTainted: false,
    provider: "kuberouter",
  });
  const status = serveStatus(parsed.text("status-socket"), async () => {
    await workload.ready;
    return {
      Version: SIM_VERSION,
      Pid: process.pid,
      PPid: 0,
      Role: "worker",
      SysInit: "",
      StubFile: "",
      Output: "",
      Workloads: true,
      SingleNode: false,
      Args: [process.env["K0S_SIM_EXE"] ?? "k0s", "worker", ...argv],
      WorkerToAPIConnectionStatus: { Message: "", Success: true },
      ClusterConfig: null,
      K0sVars: { DataDir: resolve(parsed.text("data-dir")), StatusSocketPath: parsed.text("status-socket") },
    };
  });
  await untilTold();
  log("info", "shutting down");
  status.stop();
  workload.stop();
  dropRuntime();
}

/** The token counts only as long as no kubelet.conf is there; afterwards it may be gone or expired. */
function workerConfig(parsed: Parsed, dataDir: string): KubeConfig {
  const kubelet = join(dataDir, "kubelet.conf");
  if (existsSync(kubelet)) return parseKubeConfig(readFileSync(kubelet, "utf8"));
  const token = joinToken(parsed);
  if (token === undefined)
    throw new SimError(
      "normal kubelet kubeconfig does not exist and no join-token given. dunno how to make kubelet auth to api",
    );
  const config = decodeToken(token);
  if (config.user !== "kubelet-bootstrap")
    throw new SimError(`wrong token type ${config.user}, expected type: kubelet-bootstrap`);
  return config;
}
