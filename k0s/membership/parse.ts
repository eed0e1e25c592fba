/** The kubelet's own kubeconfig, and what an answer to it says of this node's place in the cluster. Pure. */
import { parse } from "yaml";
import { z } from "zod";
import { getAt } from "../../config/path.ts";
import { parseJson } from "../../kit/json.ts";

/** `deleted`: no Node of this name. `refused`: its certificate counts no more. `foreign`: another cluster answers. */
export type Membership = "known" | "deleted" | "refused" | "foreign";

/** PEM, or the path of it. */
export type Pem = { readonly text: string } | { readonly path: string };

/** Whether Kubernetes counts on this node. */
export interface Readiness {
  /** The condition `Ready` of its Node; absent where it could not be had. */
  readonly isReady?: boolean;
  /** Why not, or what hindered the question. */
  readonly why?: string;
}

export interface KubeletConfig {
  readonly server: string;
  readonly authority: Pem;
  readonly certificate: Pem;
  readonly key: Pem;
}

export function parseKubeletConfig(text: string): KubeletConfig | undefined {
  let config: unknown;
  try {
    config = parse(text);
  } catch {
    return undefined;
  }
  const server = getAt(config, ["clusters", 0, "cluster", "server"]);
  const pem = (place: readonly (string | number)[], key: string): Pem | undefined => {
    const [data, path] = [`${key}-data`, key].map((name) => getAt(config, [...place, name]));
    if (typeof data === "string") return { text: Buffer.from(data, "base64").toString("utf8") };
    return typeof path === "string" ? { path } : undefined;
  };
  const authority = pem(["clusters", 0, "cluster"], "certificate-authority");
  const certificate = pem(["users", 0, "user"], "client-certificate");
  const key = pem(["users", 0, "user"], "client-key");
  if (typeof server !== "string" || authority === undefined || certificate === undefined || key === undefined) {
    return undefined;
  }
  return { server, authority, certificate, key };
}

/** Of one file, which the kubelet's is, the part that is asked for. */
export const pemPart = (text: string, label: "CERTIFICATE" | "KEY"): string =>
  text.match(new RegExp(`-----BEGIN [A-Z ]*${label}-----[\\s\\S]*?-----END [A-Z ]*${label}-----`))?.[0] ?? "";

/** `GET /api/v1/nodes/NAME` by the node itself. Undefined: it says nothing about that. */
export function readMembership(status: number): Membership | undefined {
  if (status === 200) return "known";
  if (status === 404) return "deleted";
  return status === 401 ? "refused" : undefined;
}

const nodeObject = z.looseObject({
  kind: z.literal("Node"),
  status: z
    .looseObject({
      conditions: z.array(z.looseObject({ type: z.string(), status: z.string(), message: z.string().default("") })),
    })
    .optional(),
});

/** `GET /api/v1/nodes/NAME`. A kubelet that fell silent has the condition `Unknown`, which is not ready. */
export function readReadiness(status: number, text: string): Readiness {
  if (status === 404) return { isReady: false, why: "the cluster has no Node of this name" };
  if (status !== 200) return { why: `the API server answered with status ${status}` };
  const parsed = nodeObject.safeParse(parseJson(text));
  if (!parsed.success) return { why: "the API server answered with something that is no Node" };
  const ready = parsed.data.status?.conditions.find(({ type }) => type === "Ready");
  if (ready?.status === "True") return { isReady: true };
  const said = ready?.message.trim() ?? "";
  return { isReady: false, why: said === "" ? "the kubelet has not said why" : said };
}
