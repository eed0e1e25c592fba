import { gunzipSync } from "node:zlib";
import { LineCounter } from "yaml";
import { composeYaml } from "./compose.ts";
import { Secret } from "../kit/secret.ts";
import { parseIp } from "./ip.ts";
import type { Problem } from "./messages/codes.ts";
import { ruleSays } from "./messages/rules.ts";
import { getAt } from "./path.ts";

export interface JoinToken {
  /** The public part: names it in the cluster's list of tokens. */
  readonly id: string;
  readonly role: "worker" | "controller";
  /** What the cluster is shown: the public part, a dot, the rest. */
  readonly bearer: Secret;
  /** The join URL: API server port for workers, k0s's own for controllers. */
  readonly server: string;
  /** PEM. Absent when it is not base64 text. */
  readonly certificateAuthority?: string;
}

const ROLES: ReadonlyMap<string, JoinToken["role"]> = new Map([
  ["kubelet-bootstrap", "worker"],
  ["controller-bootstrap", "controller"],
]);

/** A k0s join token is base64 of gzip of a kubeconfig; undefined for anything else. Nothing of it is ever quoted. */
export function readJoinToken(text: string): JoinToken | undefined {
  const reading = decodeJoinToken(text);
  return "why" in reading ? undefined : reading;
}

/** The token, or why it is none. */
export function decodeJoinToken(text: string): JoinToken | { readonly why: string } {
  // Editors and `base64` wrap it, and what is stored is one line (k0s/fill.ts).
  const base64 = text.replace(/\s+/g, "");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return { why: "it is not base64" };
  let kubeconfig: unknown;
  try {
    const plain = gunzipSync(Buffer.from(base64, "base64"), { maxOutputLength: 1024 * 1024 });
    const composed = composeYaml(plain.toString("utf8"), new LineCounter());
    const [document, ...others] = composed.kind === "composed" ? composed.documents : [];
    if (document === undefined || others.length > 0 || document.errors.length > 0) return { why: NO_KUBECONFIG };
    kubeconfig = document.toJS({ maxAliasCount: 0 });
  } catch (thrown) {
    // The checksum stands at the end.
    const isCutOff = thrown instanceof Error && "code" in thrown && thrown.code === "Z_BUF_ERROR";
    return { why: isCutOff ? "its end is missing" : NO_KUBECONFIG };
  }
  if (base64.length % 4 !== 0) return { why: "its end is missing" };
  const server = getAt(kubeconfig, ["clusters", 0, "cluster", "server"]);
  const authority = getAt(kubeconfig, ["clusters", 0, "cluster", "certificate-authority-data"]);
  const role = ROLES.get(currentUser(kubeconfig) ?? "");
  const secret = getAt(kubeconfig, ["users", 0, "user", "token"]);
  if (role === undefined) return { why: `the kubeconfig in it is for none of ${[...ROLES.keys()].join(", ")}` };
  if (typeof server !== "string" || !isJoinUrl(server)) return { why: "the kubeconfig in it names no server" };
  const [shown, id] = typeof secret === "string" ? (/^([a-z0-9]{6})\.[a-z0-9]{16}$/.exec(secret) ?? []) : [];
  if (shown === undefined || id === undefined) return { why: "the kubeconfig in it holds no secret of a token" };
  const bearer = new Secret("join token", shown);
  const pem = typeof authority === "string" ? Buffer.from(authority, "base64").toString("utf8") : undefined;
  return { id, role, bearer, server, ...(pem === undefined ? {} : { certificateAuthority: pem }) };
}

/** For those who look at the CA in it. */
export const NO_AUTHORITY = "it holds no cluster CA";
const NO_KUBECONFIG = "it does not hold a compressed kubeconfig";

const isJoinUrl = (text: string): boolean => /^https:\/\/[^\s/]+/.test(text) && URL.canParse(text);

/** The user of the current context; its name says the role. */
function currentUser(kubeconfig: unknown): string | undefined {
  const current = getAt(kubeconfig, ["current-context"]);
  const contexts = getAt(kubeconfig, ["contexts"]);
  const list: readonly unknown[] = Array.isArray(contexts) ? contexts : [];
  const context = list.find((item) => getAt(item, ["name"]) === current) ?? list[0];
  const user = getAt(context, ["context", "user"]) ?? getAt(kubeconfig, ["users", 0, "name"]);
  return typeof user === "string" ? user : undefined;
}

/** A token of another server than the endpoint may be one of another cluster, or reach the same one otherwise. */
export function serverElsewhere({ server }: JoinToken, endpoint: string | undefined): Problem | undefined {
  const host = new URL(server).hostname;
  return endpoint === undefined || isSameHost(host, endpoint) ? undefined : ruleSays.tokenServer(host, endpoint);
}

/** Names by their letters, addresses by what they are: `fd00::1` and `[fd00:0::1]` are one. */
function isSameHost(a: string, b: string): boolean {
  const [x, y] = [a, b].map((host) => parseIp(host.replace(/^\[|\]$/g, "")));
  if (x === undefined || y === undefined) return a.toLowerCase() === b.toLowerCase();
  return x.family === y.family && x.value === y.value;
}
