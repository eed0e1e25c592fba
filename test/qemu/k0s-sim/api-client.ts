/** Calls to an API server, ours or another node's, with a kubeconfig's credentials. */
import { parse, stringify } from "yaml";
import { at, listAt, textAt } from "./config.ts";
import type { Answer, Call } from "./tls-server.ts";

export interface KubeConfig {
  readonly server: string;
  readonly ca: string;
  readonly user: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

export interface ApiReply {
  readonly status: number;
  readonly body: unknown;
}

const encode = (text: string): string => Buffer.from(text).toString("base64");
const decode = (text: string): string => Buffer.from(text, "base64").toString();

export function kubeConfigYaml(config: KubeConfig, context = "k0s"): string {
  const user =
    config.token === undefined
      ? { "client-certificate-data": encode(config.cert ?? ""), "client-key-data": encode(config.key ?? "") }
      : { token: config.token };
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "k0s", cluster: { server: config.server, "certificate-authority-data": encode(config.ca) } }],
    contexts: [{ name: context, context: { cluster: "k0s", user: config.user } }],
    "current-context": context,
    users: [{ name: config.user, user }],
  });
}

export function parseKubeConfig(text: string): KubeConfig {
  const document: unknown = parse(text);
  const cluster = at(listAt(document, "clusters")[0], "cluster");
  const entry = listAt(document, "users")[0];
  const user = at(entry, "user");
  const token = textAt(user, "token");
  return {
    server: textAt(cluster, "server"),
    ca: decode(textAt(cluster, "certificate-authority-data")),
    user: textAt(entry, "name"),
    ...(token === ""
      ? { cert: decode(textAt(user, "client-certificate-data")), key: decode(textAt(user, "client-key-data")) }
      : { token }),
  };
}

export async function callApi(
  config: KubeConfig,
  method: string,
  path: string,
  body?: unknown,
  timeoutMs = 10_000,
): Promise<ApiReply> {
  const identity = config.cert === undefined ? {} : { cert: config.cert, key: config.key ?? "" };
  const response = await fetch(`${config.server}${path}`, {
    method,
    headers: {
      ...(body === undefined
        ? {}
        : { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" }),
      ...(config.token === undefined ? {} : { authorization: `Bearer ${config.token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
    tls: { ca: config.ca, ...identity },
  });
  const text = await response.text();
  try {
    return { status: response.status, body: JSON.parse(text) };
  } catch {
    return { status: response.status, body: text };
  }
}

/** The same call, answered by another server. */
export async function forward(config: KubeConfig, call: Call): Promise<Answer> {
  const query = call.query.size === 0 ? "" : `?${call.query.toString()}`;
  const body: unknown = call.body === "" ? undefined : JSON.parse(call.body);
  const reply = await callApi(config, call.method, `${call.path}${query}`, body);
  return { status: reply.status, json: reply.body };
}
