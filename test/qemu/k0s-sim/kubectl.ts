/** `k0s kubectl`: the few verbs that tests and Corium use, with kubectl's texts and exit codes. */
import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { callApi, type ApiReply, type KubeConfig } from "./api-client.ts";
import { at, configYaml, listAt, textAt } from "./config.ts";
import { cordon, drain } from "./drain.ts";
import type { KubectlResult } from "./kubectl-result.ts";
import { parseFlags, type FlagSpec, type Parsed } from "./flags.ts";
import { findResource, pathOf, resourceOf, type KubeObject, type Resource } from "./resources.ts";
import { adminConfig, readRuntime } from "./runtime.ts";
import { fault, SimError } from "./stand-in.ts";

const FLAGS: readonly FlagSpec[] = [
  { name: "namespace", short: "n", type: "string", help: "namespace", fallback: "default" },
  { name: "all-namespaces", short: "A", type: "bool", help: "all namespaces", fallback: "false" },
  { name: "output", short: "o", type: "string", help: "json, yaml, name, wide, jsonpath=…" },
  { name: "selector", short: "l", type: "string", help: "label selector" },
  { name: "filename", short: "f", type: "string", help: "file, or - for stdin" },
  { name: "ignore-not-found", type: "bool", help: "exit 0 when it is not there", fallback: "false" },
  { name: "patch", short: "p", type: "string", help: "the patch" },
  { name: "type", type: "string", help: "merge only", fallback: "merge" },
  { name: "wait", type: "bool", help: "wait until it is gone", fallback: "true" },
  { name: "timeout", type: "duration", help: "how long; 0s is without end", fallback: "0s" },
  { name: "ignore-daemonsets", type: "bool", help: "of drain", fallback: "false" },
  { name: "delete-emptydir-data", type: "bool", help: "of drain", fallback: "false" },
  { name: "force", type: "bool", help: "of drain", fallback: "false" },
  { name: "raw", type: "string", help: "a path of the API, its answer as it is" },
  { name: "request-timeout", type: "string", help: "of one request", fallback: "0" },
  { name: "server-side", type: "bool", help: "accepted", fallback: "false" },
  { name: "overwrite", type: "bool", help: "of label and taint", fallback: "false" },
  { name: "kubeconfig", type: "string", help: "accepted, the admin's is used" },
];

const failed = (err: string): KubectlResult => ({ out: "", err: `${err}\n`, exitCode: 1 });

export async function kubectlCommand(argv: readonly string[]): Promise<KubectlResult> {
  const [slowMs, word] = (fault("slow-kubectl") ?? "").split(" ");
  if (slowMs !== "" && (word === undefined || argv.includes(word))) await Bun.sleep(Number(slowMs));
  const parsed = parseFlags(FLAGS, argv);
  const [verb = "", ...words] = parsed.positional;
  const config = adminConfig(readRuntime().dataDir);
  try {
    if (verb === "get" && parsed.text("raw") !== "") return await getRaw(config, parsed.text("raw"));
    const reply = await callApi(config, "GET", "/k0s-sim/resources");
    const context: Context = { config, parsed, resources: reply.body as readonly Resource[] };
    switch (verb) {
      case "get":
        return await get(context, words);
      case "delete":
        return await remove(context, words);
      case "apply":
      case "create":
        return await apply(context);
      case "patch":
        return await patch(context, words);
      case "label":
        return await label(context, words);
      case "cordon":
      case "uncordon":
        return await cordon(context, words[0] ?? "", verb === "cordon");
      case "drain":
        return await drain(context, words[0] ?? "");
      default:
        return failed(
          `error: unknown command "${verb}" for "kubectl" (k0s-sim knows get, delete, apply, patch, label, cordon, uncordon, drain)`,
        );
    }
  } catch (error) {
    if (error instanceof SimError) throw error;
    return failed(
      `The connection to the server ${config.server.replace("https://", "")} was refused - did you specify the right host or port?`,
    );
  }
}

interface Context {
  readonly config: KubeConfig;
  readonly parsed: Parsed;
  readonly resources: readonly Resource[];
}

/** `get --raw /readyz`: the body as it is, or kubectl's words around what the server said. */
async function getRaw(config: KubeConfig, path: string): Promise<KubectlResult> {
  const { status, body } = await callApi(config, "GET", path);
  const text = typeof body === "string" ? body : JSON.stringify(body);
  if (status === 200) return { out: text, err: "", exitCode: 0 };
  const said = `an error on the server (${JSON.stringify(text.trim())}) has prevented the request from succeeding`;
  return failed(`Error from server (InternalError): ${said}`);
}

interface Wanted {
  readonly resource: Resource;
  readonly names: readonly string[];
}

/** `nodes`, `node/n1`, `charts.helm.k0sproject.io NAME NAME`. */
function wanted(context: Context, words: readonly string[]): Wanted | KubectlResult {
  const [first = "", ...rest] = words;
  if (first === "") return failed("error: You must specify the type of resource");
  const [type = "", name] = first.split("/");
  const resource = findResource(context.resources, type);
  if (resource === undefined)
    return failed(`error: the server doesn't have a resource type "${type.split(".")[0] ?? ""}"`);
  return { resource, names: name === undefined ? rest : [name, ...rest.map((each) => each.split("/").at(-1) ?? "")] };
}

const isResult = (value: Wanted | KubectlResult): value is KubectlResult => "exitCode" in value;

const namespaceOf = (context: Context, resource: Resource): string | undefined =>
  resource.isNamespaced && !context.parsed.isSet("all-namespaces") ? context.parsed.text("namespace") : undefined;

const serverError = (reply: ApiReply): string =>
  `Error from server (${textAt(reply.body, "reason") || "InternalError"}): ${textAt(reply.body, "message")}`;

async function get(context: Context, words: readonly string[]): Promise<KubectlResult> {
  const target = wanted(context, words);
  if (isResult(target)) return target;
  const { parsed, config } = context;
  const { resource, names } = target;
  const namespace = namespaceOf(context, resource);
  const items: KubeObject[] = [];
  const errors: string[] = [];
  if (names.length === 0) {
    const query = parsed.text("selector") === "" ? "" : `?labelSelector=${encodeURIComponent(parsed.text("selector"))}`;
    const reply = await callApi(config, "GET", `${pathOf(resource, namespace)}${query}`);
    if (reply.status !== 200) return failed(serverError(reply));
    items.push(...(listAt(reply.body, "items") as readonly KubeObject[]));
  }
  for (const name of names) {
    const reply = await callApi(config, "GET", pathOf(resource, namespace, name));
    if (reply.status === 200) items.push(reply.body as KubeObject);
    else if (reply.status !== 404 || !parsed.isSet("ignore-not-found")) errors.push(serverError(reply));
  }
  const err = errors.map((error) => `${error}\n`).join("");
  const out = show(parsed, resource, items, names.length === 1);
  if (items.length === 0 && errors.length === 0 && names.length === 0 && parsed.text("output") === "")
    return {
      out: "",
      err: namespace === undefined ? "No resources found\n" : `No resources found in ${namespace} namespace.\n`,
      exitCode: 0,
    };
  return { out, err, exitCode: errors.length === 0 ? 0 : 1 };
}

function show(parsed: Parsed, resource: Resource, items: readonly KubeObject[], isOne: boolean): string {
  const output = parsed.text("output");
  const value = isOne ? items[0] : { apiVersion: "v1", kind: "List", metadata: { resourceVersion: "" }, items };
  if (value === undefined) return "";
  if (output === "json") return `${JSON.stringify(value, null, 4)}\n`;
  if (output === "yaml") return configYaml(value);
  if (output === "name") return items.map((item) => `${shortName(resource)}/${item.metadata.name}\n`).join("");
  if (output.startsWith("jsonpath=")) return jsonPath(value, output.slice("jsonpath=".length));
  if (items.length === 0) return "";
  const isNode = resource.kind === "Node";
  const hasNamespace = resource.isNamespaced && parsed.isSet("all-namespaces");
  const head = [
    ...(hasNamespace ? ["NAMESPACE"] : []),
    "NAME",
    ...(isNode ? ["STATUS", "ROLES"] : []),
    "AGE",
    ...(isNode ? ["VERSION"] : []),
  ];
  const rows = items.map((item) => [
    ...(hasNamespace ? [item.metadata.namespace ?? ""] : []),
    item.metadata.name,
    ...(isNode ? [readiness(item), rolesOf(item)] : []),
    ageOf(item),
    ...(isNode ? [textAt(item, "status", "nodeInfo", "kubeletVersion")] : []),
  ]);
  const widths = head.map(
    (cell, index) => Math.max(...[head, ...rows].map((row) => row[index]?.length ?? 0), cell.length) + 3,
  );
  return [head, ...rows]
    .map(
      (row) =>
        `${row
          .map((cell, index) => cell.padEnd(widths[index] ?? 0))
          .join("")
          .trimEnd()}\n`,
    )
    .join("");
}

const shortName = (resource: Resource): string =>
  `${resource.kind.toLowerCase()}${resource.group === "" ? "" : `.${resource.group}`}`;

const readiness = (node: KubeObject): string => {
  const ready = listAt(node, "status", "conditions").find((each) => textAt(each, "type") === "Ready");
  const word = textAt(ready, "status") === "True" ? "Ready" : "NotReady";
  return at(node, "spec", "unschedulable") === true ? `${word},SchedulingDisabled` : word;
};

const rolesOf = (node: KubeObject): string =>
  Object.keys(node.metadata.labels ?? {})
    .filter((key) => key.startsWith("node-role.kubernetes.io/"))
    .map((key) => key.split("/")[1])
    .join(",") || "<none>";

function ageOf(object: KubeObject): string {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(object.metadata.creationTimestamp ?? "")) / 1000));
  if (seconds < 120) return `${seconds}s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)}m` : `${Math.floor(seconds / 3600)}h`;
}

/** Plain paths: `{.items[*].metadata.name}`, `{.status.error}`; text around them is kept. */
export function jsonPath(value: unknown, template: string): string {
  return template.replaceAll(/\{([^}]*)\}/g, (_whole, path: string) => {
    let found: unknown[] = [value];
    for (const [, name, index] of path.matchAll(/\.((?:\\.|[^.[\]])+)|\[([^\]]+)\]/g)) {
      const key = (name ?? index ?? "").replaceAll("\\.", ".").replaceAll(/^['"]|['"]$/g, "");
      found = found.flatMap((each): unknown[] => {
        if (key === "*") return Array.isArray(each) ? each : [];
        if (Array.isArray(each)) return [each.at(Number(key))];
        return [at(each, key)];
      });
    }
    return found
      .filter((each) => each !== undefined && each !== null)
      .map((each) => (typeof each === "string" ? each : JSON.stringify(each)))
      .join(" ");
  });
}

async function remove(context: Context, words: readonly string[]): Promise<KubectlResult> {
  const target = wanted(context, words);
  if (isResult(target)) return target;
  const { parsed, config } = context;
  let out = "";
  for (const name of target.names) {
    const path = pathOf(target.resource, namespaceOf(context, target.resource), name);
    const reply = await callApi(config, "DELETE", path);
    if (reply.status === 404 && parsed.isSet("ignore-not-found")) continue;
    if (reply.status !== 200) return { ...failed(serverError(reply)), out };
    out += `${shortName(target.resource)} "${name}" deleted\n`;
    // A finalizer may hold it: kubectl waits, without end unless told otherwise.
    while (parsed.isSet("wait") && (await callApi(config, "GET", path)).status === 200) await Bun.sleep(250);
  }
  return { out, err: "", exitCode: 0 };
}

async function apply(context: Context): Promise<KubectlResult> {
  const file = context.parsed.text("filename");
  const text = file === "-" ? await Bun.stdin.text() : readFileSync(file, "utf8");
  let out = "";
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as KubeObject | null;
    if (object === null) continue;
    // A definition earlier in the file makes its kind known.
    const resources = (await callApi(context.config, "GET", "/k0s-sim/resources")).body as readonly Resource[];
    const resource = resourceOf(resources, object);
    if (resource === undefined)
      return {
        ...failed(
          `error: resource mapping not found for name: "${object.metadata.name}": no matches for kind "${object.kind}" in version "${object.apiVersion}"`,
        ),
        out,
      };
    const namespace = resource.isNamespaced
      ? (object.metadata.namespace ?? context.parsed.text("namespace"))
      : undefined;
    const path = pathOf(resource, namespace, object.metadata.name);
    const old = await callApi(context.config, "GET", path);
    const isThere = old.status === 200;
    const reply = isThere
      ? await callApi(context.config, "PATCH", path, object)
      : await callApi(context.config, "POST", pathOf(resource, namespace), object);
    if (reply.status >= 300) return { ...failed(serverError(reply)), out };
    out += `${shortName(resource)}/${object.metadata.name} ${isThere ? "configured" : "created"}\n`;
  }
  return { out, err: "", exitCode: 0 };
}

async function patch(context: Context, words: readonly string[]): Promise<KubectlResult> {
  const target = wanted(context, words);
  if (isResult(target)) return target;
  const name = target.names[0] ?? "";
  const path = pathOf(target.resource, namespaceOf(context, target.resource), name);
  const reply = await callApi(context.config, "PATCH", path, JSON.parse(context.parsed.text("patch")));
  if (reply.status !== 200) return failed(serverError(reply));
  return { out: `${shortName(target.resource)}/${name} patched\n`, err: "", exitCode: 0 };
}

async function label(context: Context, words: readonly string[]): Promise<KubectlResult> {
  const target = wanted(context, words);
  if (isResult(target)) return target;
  const [name = "", ...pairs] = target.names;
  const labels = Object.fromEntries(
    pairs.map((pair): [string, string | null] =>
      pair.endsWith("-") ? [pair.slice(0, -1), null] : [pair.split("=")[0] ?? "", pair.split("=")[1] ?? ""],
    ),
  );
  const path = pathOf(target.resource, namespaceOf(context, target.resource), name);
  const reply = await callApi(context.config, "PATCH", path, { metadata: { labels } });
  if (reply.status !== 200) return failed(serverError(reply));
  return { out: `${shortName(target.resource)}/${name} labeled\n`, err: "", exitCode: 0 };
}
