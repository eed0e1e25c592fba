/** The Kubernetes API as far as tests need it: plain objects, no admission, no watches. */
import { isRecord } from "./schema.ts";
import { apiVersionOf, fullName, type KubeObject, type Resource } from "./resources.ts";
import type { Store } from "./store.ts";
import { fault, SIM_VERSION } from "./stand-in.ts";
import type { Answer, Call } from "./tls-server.ts";

export interface Identity {
  readonly name: string;
  readonly groups: readonly string[];
}

const failure = (status: number, reason: string, message: string): Answer => ({
  status,
  json: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code: status },
});

/** Public on every API server: health and version. */
export function publicAnswer(path: string, isReady: () => boolean): Answer | undefined {
  if (["/readyz", "/livez", "/healthz"].includes(path))
    return isReady() && fault("not-ready") === undefined
      ? { status: 200, text: "ok" }
      : { status: 500, text: `[-]k0s-sim failed: reason withheld\n${path.slice(1)} check failed\n` };
  if (path !== "/version") return undefined;
  const [, major = "", minor = "", patch = ""] = /^v(\d+)\.(\d+)\.(\d+)/.exec(SIM_VERSION) ?? [];
  // k0s builds Kubernetes with `+k0s` as its version's metadata.
  return {
    status: 200,
    json: { major, minor, gitVersion: `v${major}.${minor}.${patch}+k0s-sim`, platform: "linux/amd64" },
  };
}

/** Who calls: a certificate of the cluster's CA, or a bootstrap token. */
export function identify(store: Store, call: Call): Identity | undefined {
  if (call.client !== undefined) return { name: call.client.commonName, groups: [call.client.organization] };
  if (call.bearer === undefined) return undefined;
  const usage = bootstrapToken(store, call.bearer);
  return usage === undefined
    ? undefined
    : { name: `system:bootstrap:${call.bearer.split(".")[0] ?? ""}`, groups: ["system:bootstrappers"] };
}

/** `worker` or `controller` when the token is known and not expired. */
export function bootstrapToken(store: Store, token: string): "worker" | "controller" | undefined {
  const [id, secret] = token.split(".");
  const resource = store.resources().find((each) => each.plural === "secrets");
  const found = resource === undefined ? undefined : store.get(resource, "kube-system", `bootstrap-token-${id ?? ""}`);
  const data = isRecord(found?.["stringData"]) ? found["stringData"] : undefined;
  if (data === undefined || data["token-secret"] !== secret) return undefined;
  const expiration = data["expiration"];
  if (typeof expiration === "string" && Date.parse(expiration) < Date.now()) return undefined;
  return data["usage-controller-join"] === "true" ? "controller" : "worker";
}

interface Target {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly name?: string;
}

function parsePath(resources: readonly Resource[], path: string): Target | undefined {
  const match = /^\/(?:api\/(v1)|apis\/([^/]+)\/([^/]+))\/(.+)$/.exec(path);
  if (match === null) return undefined;
  const group = match[2] ?? "";
  let rest = (match[4] ?? "").split("/");
  let namespace: string | undefined;
  if (rest[0] === "namespaces" && rest.length > 2 && rest[2] !== "status") {
    namespace = rest[1];
    rest = rest.slice(2);
  }
  const resource = resources.find((each) => each.group === group && each.plural === rest[0]);
  if (resource === undefined) return undefined;
  const name = rest[1];
  return { resource, ...(namespace === undefined ? {} : { namespace }), ...(name === undefined ? {} : { name }) };
}

export function matchesSelector(object: KubeObject, selector: string | null): boolean {
  const labels = object.metadata.labels ?? {};
  return (selector ?? "")
    .split(",")
    .filter((part) => part !== "")
    .every((part) => {
      const [key = "", value] = part.split(/==?/);
      return value === undefined ? key in labels : labels[key] === value;
    });
}

function mergePatch(base: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(base) ? { ...base } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** Admins may do everything; kubelets write their own Node but can't delete it; a bootstrap token reads requests to sign. */
export function refusal(store: Store, call: Call, identity: Identity): Answer | undefined {
  const target = parsePath(store.resources(), call.path);
  if (target === undefined || identity.groups.includes("system:masters")) return undefined;
  const { resource, name } = target;
  const isOwnNode =
    resource.kind === "Node" &&
    (name === undefined || identity.name === `system:node:${name}`) &&
    call.method !== "DELETE";
  const isReading = call.method === "GET";
  const isBootstrapping = identity.groups.includes("system:bootstrappers");
  if (isBootstrapping ? isReading && resource.kind === "CertificateSigningRequest" : isReading || isOwnNode) {
    return undefined;
  }
  const verb = call.method.toLowerCase();
  return failure(403, "Forbidden", `${fullName(resource)} is forbidden: User "${identity.name}" cannot ${verb} it`);
}

export function answerApi(store: Store, call: Call, identity: Identity | undefined): Answer {
  if (identity === undefined) return failure(401, "Unauthorized", "Unauthorized");
  const resources = store.resources();
  if (call.path === "/k0s-sim/resources") return { status: 200, json: resources };
  const target = parsePath(resources, call.path);
  if (target === undefined) return { status: 404, text: "404 page not found\n" };
  const { resource, namespace, name } = target;
  const refused = refusal(store, call, identity);
  if (refused !== undefined) return refused;
  if (name === undefined) {
    if (call.method === "POST") {
      const object = JSON.parse(call.body) as KubeObject;
      if (store.get(resource, namespace, object.metadata.name) !== undefined)
        return failure(409, "AlreadyExists", `${fullName(resource)} "${object.metadata.name}" already exists`);
      return { status: 201, json: store.put(withNamespace(object, namespace)) };
    }
    if (call.method !== "GET")
      return failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    const items = store
      .list(resource, namespace)
      .filter((each) => matchesSelector(each, call.query.get("labelSelector")));
    return { status: 200, json: { apiVersion: apiVersionOf(resource), kind: `${resource.kind}List`, items } };
  }
  const found = store.get(resource, namespace, name);
  if (found === undefined && call.method !== "PUT")
    return failure(404, "NotFound", `${fullName(resource)} "${name}" not found`);
  switch (call.method) {
    case "GET":
      return { status: 200, json: found };
    case "PUT":
      return { status: 200, json: store.put(withNamespace(JSON.parse(call.body) as KubeObject, namespace)) };
    case "PATCH":
      return { status: 200, json: store.put(mergePatch(found, JSON.parse(call.body)) as KubeObject) };
    case "DELETE":
      if (found !== undefined) store.remove(found);
      return { status: 200, json: { kind: "Status", apiVersion: "v1", status: "Success" } };
    default:
      return failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
  }
}

const withNamespace = (object: KubeObject, namespace: string | undefined): KubeObject =>
  namespace === undefined ? object : { ...object, metadata: { ...object.metadata, namespace } };
