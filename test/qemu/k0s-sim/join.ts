/** The join API on 9443: the CA and a place in etcd for who has a controller token. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bootstrapToken } from "./api-server.ts";
import { callApi, type KubeConfig } from "./api-client.ts";
import { textAt, type ClusterConfig } from "./config.ts";
import { memberName, readMembers, tellMembers, writeMembers, type Members } from "./members.ts";
import type { Pki } from "./pki.ts";
import { log, SimError } from "./stand-in.ts";
import type { KubeObject } from "./resources.ts";
import type { Store } from "./store.ts";
import { listenTls, type TlsListener } from "./tls-server.ts";

/** What a joining controller takes over. */
const SHARED = ["ca.crt", "ca.key", "sa.key", "sa.pub", "etcd/ca.crt", "etcd/ca.key"] as const;

export async function serveJoinApi(options: {
  readonly port: number;
  readonly dataDir: string;
  readonly pki: Pki;
  readonly store: Store;
  readonly host?: string;
}): Promise<TlsListener> {
  const { dataDir, store } = options;
  const host = options.host === undefined ? {} : { host: options.host };
  const shared = (name: string): string => readFileSync(join(dataDir, "pki", name), "utf8");
  return await listenTls(
    { port: options.port, ...host, pair: options.pki.joinApi, ca: options.pki.ca.cert },
    (call) => {
      if (call.bearer === undefined || bootstrapToken(store, call.bearer) !== "controller")
        return Promise.resolve({ status: 401, json: { message: "Unauthorized" } });
      if (call.method === "GET" && call.path === "/v1beta1/ca")
        return Promise.resolve({
          status: 200,
          json: {
            ...Object.fromEntries(SHARED.map((name) => [name, shared(name)])),
            // What k0s gives, under its own names.
            cert: Buffer.from(shared("ca.crt")).toString("base64"),
            key: Buffer.from(shared("ca.key")).toString("base64"),
          },
        });
      if (call.method === "POST" && call.path === "/v1beta1/etcd/members") {
        const request = JSON.parse(call.body) as { readonly node: string; readonly peerAddress: string };
        const members = { ...readMembers(dataDir), [request.node]: `https://${request.peerAddress}:2380` };
        writeMembers(dataDir, members);
        // Known to all before the new one counts, as etcd would have it.
        return tellMembers(dataDir, members).then(() => ({
          status: 200,
          json: { members, revision: store.revision(), objects: store.dump() },
        }));
      }
      return Promise.resolve({ status: 404, json: { message: "not found" } });
    },
  );
}

/** Fetches the CA and the datastore of the cluster; what a controller with a token does before it starts. */
export async function joinControlPlane(token: KubeConfig, dataDir: string, config: ClusterConfig): Promise<void> {
  if (token.user !== "controller-bootstrap")
    throw new SimError(`wrong token type ${token.user}, expected type: controller-bootstrap`);
  const shared = await retry("failed to join existing control plane", () => callApi(token, "GET", "/v1beta1/ca"));
  for (const name of SHARED) {
    const content = (shared as Record<string, string>)[name] ?? "";
    const path = join(dataDir, "pki", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { mode: name.endsWith(".key") ? 0o640 : 0o644 });
  }
  const joined = await retry("failed to sync etcd config", () =>
    callApi(token, "POST", "/v1beta1/etcd/members", {
      node: memberName(config),
      peerAddress: textAt(config, "spec", "storage", "etcd", "peerAddress"),
    }),
  );
  const { members, objects, revision } = joined as {
    readonly members: Members;
    readonly revision: number;
    readonly objects: readonly KubeObject[];
  };
  writeMembers(dataDir, members);
  const { openStore } = await import("./store.ts");
  const store = openStore(join(dataDir, "etcd/member/snap/db"));
  store.load(objects, revision);
  store.close();
  log("info", `joined the control plane as ${memberName(config)}`, "etcd");
}

/** Unreachable is tried again, a refusal is not. */
async function retry(
  failing: string,
  call: () => Promise<{ readonly status: number; readonly body: unknown }>,
): Promise<unknown> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const reply = await call();
      if (reply.status === 200) return reply.body;
      throw new SimError(
        `${failing}: unexpected response status: ${reply.status} ${reply.status === 401 ? "Unauthorized" : ""}`.trim(),
      );
    } catch (error) {
      if (error instanceof SimError || attempt === 10) throw error;
      log("warning", `${failing}: ${String(error)}, retrying`);
      await Bun.sleep(3000);
    }
  }
}
