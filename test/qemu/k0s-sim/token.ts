/** Join tokens: base64 of a gzipped kubeconfig. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { randomBytes } from "node:crypto";
import { callApi, kubeConfigYaml, parseKubeConfig, type KubeConfig } from "./api-client.ts";
import { at, configYaml, listAt, loadConfig, textAt } from "./config.ts";
import { parseFlags, type FlagSpec } from "./flags.ts";
import { pathOf, type KubeObject } from "./resources.ts";
import { adminConfig, apiUrl, controllerJoinUrl, readRuntime } from "./runtime.ts";
import { SimError } from "./stand-in.ts";
import { askSocket, type Status } from "./status.ts";

export type JoinRole = "worker" | "controller";

export function encodeToken(config: KubeConfig): string {
  return gzipSync(kubeConfigYaml(config)).toString("base64");
}

export function decodeToken(token: string): KubeConfig {
  try {
    return parseKubeConfig(gunzipSync(Buffer.from(token.trim(), "base64")).toString());
  } catch (error) {
    throw new SimError(`failed to decode join token: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const ROLE: FlagSpec = { name: "role", type: "string", help: "Either worker or controller", fallback: "worker" };
const SECRETS = { group: "", version: "v1", kind: "Secret", plural: "secrets", isNamespaced: true } as const;

export async function tokenCommand(argv: readonly string[]): Promise<string> {
  const [verb, ...rest] = argv;
  if (verb === "create") return await create(rest);
  if (verb === "list") return await list(rest);
  if (verb === "invalidate") return await invalidate(rest);
  if (verb === "pre-shared") return preShared(rest);
  throw new SimError(`unknown command "${verb ?? ""}" for "k0s token"`);
}

const checkRole = (role: string): JoinRole => {
  if (role === "worker" || role === "controller") return role;
  throw new SimError(`unsupported role ${JSON.stringify(role)}, supported roles are "controller" and "worker"`);
};

async function create(argv: readonly string[]): Promise<string> {
  const flags: readonly FlagSpec[] = [
    ROLE,
    { name: "expiry", type: "duration", help: "Expiration time of the token", fallback: "0s" },
    { name: "wait", type: "bool", help: "wait for the API", fallback: "false" },
  ];
  const parsed = parseFlags(flags, argv);
  const role = checkRole(parsed.text("role"));
  const status = (await askSocket("/run/k0s/status.sock", "status")) as Status;
  if (status.SingleNode) throw new SimError("refusing to create token: cannot join into a single node cluster");
  const runtime = readRuntime();
  // The file as it is on disk now, not what the running process loaded.
  const config = await loadConfig({ path: runtime.configPath });
  if (
    role === "controller" &&
    textAt(config, "spec", "storage", "type") === "kine" &&
    !isJoinable(textAt(config, "spec", "storage", "kine", "dataSource"))
  )
    throw new SimError("refusing to create token: cannot join controller into current storage");
  const admin = adminConfig(runtime.dataDir);
  const token = { id: randomToken(6), secret: randomToken(16) };
  const secret = tokenSecret(token, role, durationMs(parsed.text("expiry")));
  const reply = await callApi(admin, "POST", pathOf(SECRETS, "kube-system"), secret);
  if (reply.status !== 201) throw new SimError(`failed to create token: ${JSON.stringify(reply.body)}`);
  const server = role === "worker" ? apiUrl(config) : controllerJoinUrl(config);
  return `${encodeToken({ server, ca: admin.ca, user: userOf(role), token: `${token.id}.${token.secret}` })}\n`;
}

const isJoinable = (dataSource: string): boolean => !/^(?:sqlite|nats):/.test(dataSource) && dataSource !== "";

function randomToken(length: number): string {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  return [...randomBytes(length)].map((byte) => letters[byte % letters.length]).join("");
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A duration as Go writes it. */
export const durationMs = (text: string): number =>
  [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)].reduce(
    (sum, part) => sum + Number(part[1]) * (UNIT_MS[part[2] ?? ""] ?? 0),
    0,
  );

async function list(argv: readonly string[]): Promise<string> {
  // Upstream: help says that empty means all, a check before it refuses the empty default.
  const role = checkRole(parseFlags([{ ...ROLE, fallback: "" }], argv).text("role"));
  const admin = adminConfig(readRuntime().dataDir);
  const reply = await callApi(admin, "GET", pathOf(SECRETS, "kube-system"));
  const rows = listAt(reply.body, "items")
    .filter((item) => textAt(item, "metadata", "name").startsWith("bootstrap-token-"))
    .map((item) => at(item, "stringData"))
    .filter((data) => textAt(data, "usage-controller-join") === String(role === "controller"))
    .map((data) => [textAt(data, "token-id"), role, textAt(data, "expiration") || "<never>"]);
  if (rows.length === 0) return "No k0s join tokens found\n";
  return [["ID", "ROLE", "EXPIRES AT"], ...rows]
    .map((row) =>
      row
        .map((cell) => cell.padEnd(12))
        .join("")
        .trimEnd(),
    )
    .join("\n")
    .concat("\n");
}

async function invalidate(ids: readonly string[]): Promise<string> {
  if (ids.length === 0) throw new SimError("requires at least one token ID to invalidate");
  const admin = adminConfig(readRuntime().dataDir);
  let printed = "";
  for (const id of ids) {
    await callApi(admin, "DELETE", pathOf(SECRETS, "kube-system", `bootstrap-token-${id}`));
    printed += `token ${id} deleted successfully\n`;
  }
  return printed;
}

/** Offline: the Secret to put among the manifests, and the token. */
function preShared(argv: readonly string[]): string {
  const flags: readonly FlagSpec[] = [
    ROLE,
    { name: "cert", type: "string", help: "path to the CA certificate file" },
    { name: "url", type: "string", help: "url of the api server to join" },
    { name: "out", type: "string", help: "path to the output directory", fallback: "." },
    { name: "valid", type: "duration", help: "how long the token is valid, in Go duration format", fallback: "0s" },
  ];
  const parsed = parseFlags(flags, argv);
  const role = checkRole(parsed.text("role"));
  for (const name of ["cert", "url"])
    if (parsed.text(name) === "") throw new SimError(`required flag(s) "${name}" not set`);
  const token = { id: randomToken(6), secret: randomToken(16) };
  const out = parsed.text("out");
  const secret = tokenSecret(token, role, durationMs(parsed.text("valid")));
  writeFileSync(join(out, `bootstrap-token-${token.id}.yaml`), configYaml(secret), { mode: 0o600 });
  const config = {
    server: parsed.text("url"),
    ca: readFileSync(parsed.text("cert"), "utf8"),
    user: userOf(role),
    token: `${token.id}.${token.secret}`,
  };
  writeFileSync(join(out, `token_${token.id}`), encodeToken(config), { mode: 0o600 });
  return "";
}

const userOf = (role: JoinRole): string => (role === "worker" ? "kubelet-bootstrap" : "controller-bootstrap");

function tokenSecret(
  token: { readonly id: string; readonly secret: string },
  role: JoinRole,
  lifetimeMs: number,
): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `bootstrap-token-${token.id}`, namespace: "kube-system" },
    type: "bootstrap.kubernetes.io/token",
    stringData: {
      "token-id": token.id,
      "token-secret": token.secret,
      ...(lifetimeMs === 0 ? {} : { expiration: new Date(Date.now() + lifetimeMs).toISOString() }),
      "usage-bootstrap-authentication": String(role === "worker"),
      "usage-controller-join": String(role === "controller"),
    },
  };
}
