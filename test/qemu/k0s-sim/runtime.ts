/** What a running k0s left for its other commands, and where its API is. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname, join } from "node:path";
import { parseKubeConfig, type KubeConfig } from "./api-client.ts";
import { numberAt, textAt, type ClusterConfig } from "./config.ts";
import { rooted, SimError } from "./stand-in.ts";

export interface Runtime {
  readonly dataDir: string;
  readonly configPath: string;
  readonly pid: number;
}

const PATH = "/run/k0s/k0s.yaml";

export function writeRuntime(runtime: Runtime): void {
  mkdirSync(dirname(rooted(PATH)), { recursive: true });
  writeFileSync(rooted(PATH), `${JSON.stringify(runtime)}\n`, { mode: 0o600 });
}

export const dropRuntime = (): void => {
  rmSync(rooted(PATH), { force: true });
};

/** While k0s runs its commands take their settings from here, whatever flags say. */
export function readRuntime(): Runtime {
  const given = { dataDir: "/var/lib/k0s", configPath: "/etc/k0s/k0s.yaml", pid: 0 };
  return existsSync(rooted(PATH))
    ? { ...given, ...(JSON.parse(readFileSync(rooted(PATH), "utf8")) as Partial<Runtime>) }
    : given;
}

export const isAlive = (pid: number): boolean => pid > 0 && existsSync(`/proc/${pid}`);

const hostOf = (address: string): string => (isIP(address) === 6 ? `[${address}]` : address);

/** An externalAddress with a port takes both, the API's and the join API's. */
function url(config: ClusterConfig, port: number): string {
  const external = textAt(config, "spec", "api", "externalAddress");
  if (/^(?:\[.*\]|[^:]+):\d+$/.test(external)) return `https://${external}`;
  return `https://${hostOf(external === "" ? textAt(config, "spec", "api", "address") : external)}:${port}`;
}

export const apiUrl = (config: ClusterConfig): string => url(config, numberAt(config, 6443, "spec", "api", "port"));

export const controllerJoinUrl = (config: ClusterConfig): string =>
  url(config, numberAt(config, 9443, "spec", "api", "k0sApiPort"));

export function adminConfig(dataDir: string): KubeConfig {
  const path = join(rooted(dataDir), "pki/admin.conf");
  if (!existsSync(path))
    throw new SimError(
      `failed to read admin config, is the control plane initialized on this node? open ${path}: no such file or directory`,
    );
  const config = parseKubeConfig(readFileSync(path, "utf8"));
  // Tests of several controllers on one host: theirs do not listen on localhost.
  const server = process.env["K0S_SIM_API"];
  return server === undefined ? config : { ...config, server };
}
