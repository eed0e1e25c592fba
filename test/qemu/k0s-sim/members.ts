/** Who is in etcd, as each member has it written down. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { callApi, type KubeConfig } from "./api-client.ts";
import { readPair } from "./certificates.ts";
import { textAt, type ClusterConfig } from "./config.ts";

export interface Members {
  readonly [name: string]: string;
}

const membersPath = (dataDir: string): string => join(dataDir, "etcd/members.json");

export function readMembers(dataDir: string): Members {
  return existsSync(membersPath(dataDir)) ? (JSON.parse(readFileSync(membersPath(dataDir), "utf8")) as Members) : {};
}

export function writeMembers(dataDir: string, members: Members): void {
  mkdirSync(dirname(membersPath(dataDir)), { recursive: true, mode: 0o700 });
  writeFileSync(membersPath(dataDir), `${JSON.stringify(members)}\n`);
}

/** The member's name stays the system's host name unless the configuration gives one. */
export const memberName = (config: ClusterConfig): string =>
  textAt(config, "spec", "storage", "etcd", "extraArgs", "name") || hostname();

/** Speaks to a member with this node's own peer certificate. */
export function peerConfig(dataDir: string, url: string): KubeConfig {
  const ca = readPair(join(dataDir, "pki/etcd/ca"));
  const pair = readPair(join(dataDir, "pki/etcd/peer"));
  return { server: url, ca: ca?.cert ?? "", user: "etcd", ...pair };
}

/** Best effort: who is away takes it from the leader when it is back. */
export async function tellMembers(dataDir: string, members: Members): Promise<void> {
  const tell = (url: string): Promise<unknown> => callApi(peerConfig(dataDir, url), "POST", "/members", members, 1500);
  await Promise.allSettled(Object.values(members).map(tell));
}
