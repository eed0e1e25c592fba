/**
 * etcd's part as far as tests need it: members that see each other on 2380, one leader while a majority is there, the
 * leader's objects copied to the others. Kept simple on purpose: a follower copies the whole store when it changed. A
 * leader that is told to stop waits until a majority has its objects, as etcd's writes do; one that is killed may take
 * the last half second along.
 */
import { join } from "node:path";
import { callApi, type KubeConfig } from "./api-client.ts";
import { issue, keepPair, readPair } from "./certificates.ts";
import { numberAt, textAt, type ClusterConfig } from "./config.ts";
import { memberName, peerConfig, readMembers, writeMembers, type Members } from "./members.ts";
import type { KubeObject } from "./resources.ts";
import { log } from "./stand-in.ts";
import type { Store } from "./store.ts";
import { listenTls } from "./tls-server.ts";

export interface Leader {
  /** Where the leader's API is; undefined: it is this node. */
  readonly api?: string;
}

export interface Cluster {
  isLeader(): boolean;
  /** Undefined without a majority: then nothing can be written, and the API is not ready. */
  leader(): Leader | undefined;
  /** Once nothing writes any more. */
  stop(): Promise<void>;
}

interface PeerState {
  readonly name: string;
  readonly term: number;
  readonly isLeader: boolean;
  readonly revision: number;
  readonly api: string;
  readonly members: Members;
}

const LOOK_MS = 500;
/** For others that are there and don't copy: a unit's stop is not held back for long. */
const COPIED_WITHIN_MS = 5000;

/** One node with its own database: always its own leader. */
export const aloneCluster: Cluster = { isLeader: () => true, leader: () => ({}), stop: () => Promise.resolve() };

export async function startCluster(options: {
  readonly dataDir: string;
  readonly config: ClusterConfig;
  readonly store: Store;
}): Promise<Cluster> {
  const { dataDir, config, store } = options;
  const name = memberName(config);
  const address = textAt(config, "spec", "storage", "etcd", "peerAddress");
  const ca = readPair(join(dataDir, "pki/etcd/ca"));
  if (ca === undefined) throw new Error("pki/etcd/ca is not there");
  const sans = [address, "127.0.0.1", "localhost"];
  const pair = await keepPair(join(dataDir, "pki/etcd/peer"), () => issue(ca, { commonName: name, sans }));
  const api = `https://${textAt(config, "spec", "api", "address")}:${numberAt(config, 6443, "spec", "api", "port")}`;
  if (Object.keys(readMembers(dataDir)).length === 0) writeMembers(dataDir, { [name]: `https://${address}:2380` });

  let term = 0;
  let isLeader = false;
  let leader: Leader | undefined;
  let isWanted = true;
  const state = (): PeerState => ({
    name,
    term,
    isLeader,
    revision: store.revision(),
    api,
    members: readMembers(dataDir),
  });

  const listener = await listenTls({ port: 2380, host: address, pair, ca: ca.cert }, (call) => {
    if (call.client === undefined) return Promise.resolve({ status: 401 });
    if (call.path === "/members" && call.method === "POST") writeMembers(dataDir, JSON.parse(call.body) as Members);
    const isDump = call.path === "/dump";
    return Promise.resolve({
      status: 200,
      json: isDump ? { objects: store.dump(), revision: store.revision() } : state(),
    });
  }).catch((error: unknown) => {
    log("error", `peers can't reach this member: ${String(error)}`, "etcd");
    return undefined;
  });

  const peer = (url: string): KubeConfig => peerConfig(dataDir, url);

  /** The other members, and what those say that answer. */
  async function ask(members: Members): Promise<{
    readonly others: number;
    readonly alive: readonly (PeerState & { readonly url: string })[];
  }> {
    const urls = Object.entries(members)
      .filter(([member]) => member !== name)
      .map(([, url]) => url);
    const answers = await Promise.all(
      urls.map((url) =>
        callApi(peer(url), "GET", "/state", undefined, 1500).then(
          (reply) => (reply.status === 200 ? { url, ...(reply.body as PeerState) } : undefined),
          () => undefined,
        ),
      ),
    );
    return { others: urls.length, alive: answers.filter((answer) => answer !== undefined) };
  }

  /** Until a majority has the objects of this leader, or there is none to give them to. */
  async function handOver(): Promise<void> {
    const deadline = performance.now() + COPIED_WITHIN_MS;
    while (isLeader && performance.now() < deadline) {
      const { others, alive } = await ask(readMembers(dataDir));
      const copied = alive.filter((each) => each.revision >= store.revision()).length;
      if (copied + 1 > (others + 1) / 2 || alive.length === 0) return;
      await Bun.sleep(LOOK_MS / 5);
    }
  }

  async function look(): Promise<void> {
    const members = readMembers(dataDir);
    const { others, alive } = await ask(members);
    if (alive.length + 1 <= (others + 1) / 2) {
      if (leader !== undefined) log("error", "etcdserver: no leader", "etcd");
      isLeader = false;
      leader = undefined;
      return;
    }
    const claiming = alive
      .filter((each) => each.isLeader)
      .toSorted((a, b) => b.term - a.term || (a.name < b.name ? -1 : 1))[0];
    if (
      claiming !== undefined &&
      (!isLeader || claiming.term > term || (claiming.term === term && claiming.name < name))
    ) {
      if (isLeader) log("warning", `stepping down for ${claiming.name}`, "etcd");
      isLeader = false;
      term = claiming.term;
      if (claiming.members[name] === undefined) {
        log("error", "the member has been permanently removed from the cluster", "etcd");
        process.exit(1);
      }
      if (JSON.stringify(claiming.members) !== JSON.stringify(members)) writeMembers(dataDir, claiming.members);
      if (claiming.revision !== store.revision()) {
        const dump = await callApi(peer(claiming.url), "GET", "/dump", undefined, 5000);
        const { objects, revision } = dump.body as {
          readonly objects: readonly KubeObject[];
          readonly revision: number;
        };
        store.load(objects, revision);
      }
      leader = { api: claiming.api };
      return;
    }
    if (isLeader) return;
    // Nobody leads: who has the newest data does; on a tie the first by name.
    const better = alive.some(
      (each) => each.revision > store.revision() || (each.revision === store.revision() && each.name < name),
    );
    if (better) return;
    term = Math.max(term, ...alive.map((each) => each.term)) + 1;
    isLeader = true;
    leader = {};
    log("info", `${name} leads, term ${term}`, "etcd");
  }

  await look();
  void (async () => {
    while (isWanted) {
      await Bun.sleep(LOOK_MS);
      if (isWanted) await look().catch((error: unknown) => log("warning", String(error), "etcd"));
    }
  })();
  return {
    isLeader: () => isLeader,
    leader: () => leader,
    stop: async () => {
      isWanted = false;
      await handOver();
      listener?.stop();
    },
  };
}
