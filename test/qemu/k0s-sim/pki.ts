/** The certificates under <data-dir>/pki; what k0s made itself is issued anew when names ask for it. */
import { existsSync, writeFileSync } from "node:fs";
import { generateKeyPairSync } from "node:crypto";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { kubeConfigYaml } from "./api-client.ts";
import { createAuthority, issue, keepPair, readPair, sansOf, writePair, type Pair } from "./certificates.ts";
import { listAt, numberAt, textAt, type ClusterConfig } from "./config.ts";

export interface Pki {
  readonly ca: Pair;
  readonly server: Pair;
  readonly joinApi: Pair;
}

/** api.address, externalAddress, sans, the VIPs, local addresses and the names of the service. */
export function wantedSans(config: ClusterConfig, hostname: string): readonly string[] {
  const instances = listAt(config, "spec", "network", "controlPlaneLoadBalancing", "keepalived", "vrrpInstances");
  const vips = instances
    .flatMap((instance) => listAt(instance, "virtualIPs"))
    .map((cidr) => String(cidr).split("/")[0] ?? "");
  const local = Object.values(networkInterfaces()).flatMap((rows) =>
    (rows ?? []).map((row) => row.address.split("%")[0] ?? ""),
  );
  const external = textAt(config, "spec", "api", "externalAddress").replace(/:\d+$/, "");
  const domain = textAt(config, "spec", "network", "clusterDomain");
  const names = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    `kubernetes.default.svc.${domain}`,
    "localhost",
  ];
  const given = listAt(config, "spec", "api", "sans").map(String);
  const all = [
    ...names,
    hostname,
    "127.0.0.1",
    textAt(config, "spec", "api", "address"),
    external,
    ...given,
    ...vips,
    ...local,
  ];
  return [...new Set(all.filter((name) => name !== ""))];
}

export async function preparePki(dataDir: string, config: ClusterConfig, hostname: string): Promise<Pki> {
  const pki = join(dataDir, "pki");
  const ca = await keepPair(join(pki, "ca"), () => createAuthority("kubernetes-ca"));
  await keepPair(join(pki, "front-proxy-ca"), () => createAuthority("kubernetes-front-proxy-ca"));
  await keepPair(join(pki, "etcd/ca"), () => createAuthority("etcd-ca"));
  if (!existsSync(join(pki, "sa.key"))) {
    const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
    writeFileSync(join(pki, "sa.key"), keys.privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o640 });
    writeFileSync(join(pki, "sa.pub"), keys.publicKey.export({ type: "spki", format: "pem" }), { mode: 0o640 });
  }
  const sans = wantedSans(config, hostname);
  const server = await withSans(join(pki, "server"), ca, "kubernetes", sans);
  const joinApi = await withSans(join(pki, "k0s-api"), ca, "k0s-api", sans);
  const admin = await keepPair(join(pki, "admin"), () =>
    issue(ca, { commonName: "kubernetes-admin", organization: "system:masters" }),
  );
  const port = numberAt(config, 6443, "spec", "api", "port");
  const adminConf = kubeConfigYaml(
    { server: `https://localhost:${port}`, ca: ca.cert, user: "admin", ...admin },
    "Default",
  );
  writeFileSync(join(pki, "admin.conf"), adminConf, { mode: 0o600 });
  return { ca, server, joinApi };
}

async function withSans(base: string, ca: Pair, commonName: string, sans: readonly string[]): Promise<Pair> {
  const kept = readPair(base);
  const has = new Set(kept === undefined ? [] : sansOf(kept.cert));
  if (kept !== undefined && sans.every((name) => has.has(name))) return kept;
  const pair = await issue(ca, { commonName, organization: "kubernetes", sans });
  writePair(base, pair);
  return pair;
}
