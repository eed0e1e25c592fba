import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { maskCidr, parseCidr } from "../ip.ts";
import type { Problem } from "../messages/codes.ts";
import { valueSays } from "../messages/values.ts";
import { anyText, host, label, secretSource, sourceMeta, text } from "./fields.ts";

export const role = z.enum(["single", "controller", "controller+worker", "worker"]).meta({
  description: "What this node is in its cluster.",
  rule: "may be absent while the API is on: the node then waits to be told",
  examples: ["single", "controller", "controller+worker", "worker"],
});

export const cluster = z
  .strictObject({
    name: label.optional().meta({
      description: "Name of the cluster.",
      rule: "a lower-case DNS label, at most 63",
      default: DEFAULTS.clusterName,
      examples: ["harbour"],
    }),
    endpoint: host.optional().meta({
      description: "Where clients and joining nodes reach the API server; the first name of its certificate.",
      rule: "host name or IP, no port; required with ha",
      examples: ["api.harbour.example.net", "192.0.2.100"],
    }),
    subjectAltNames: z
      .array(host)
      .optional()
      .meta({
        description: "Further names and addresses of the API server's certificate.",
        rule: "DNS names (no wildcard) and IPs",
        default: [],
        examples: [["k8s.example.net", "203.0.113.7"]],
      }),
  })
  .meta({
    description: "The cluster that this node founds or joins.",
    examples: [{ name: "harbour", endpoint: "192.0.2.100", subjectAltNames: ["api.harbour.example.net"] }],
  });

function rangeProblem(value: string): Problem | undefined {
  const cidr = parseCidr(value);
  if (cidr === undefined) return valueSays.range4(value);
  if (cidr.ip.family === 6) return valueSays.ipv6Range(value);
  return cidr.hasHostBits ? valueSays.hostBits(value, maskCidr(value)) : undefined;
}

const RANGE_FORM = { pattern: "^[0-9.]+/[0-9]{1,2}$" };

const range = text(rangeProblem, RANGE_FORM);

/** kube-apiserver's minimum: 8 addresses. */
const serviceRange = text((value) => {
  const found = rangeProblem(value);
  return found === undefined && (parseCidr(value)?.prefix ?? 0) > 29 ? valueSays.fewServices(value) : found;
}, RANGE_FORM);

const RANGE_RULE = "IPv4, host bits zero; apart from each other, every overlay and the HA address";

export const network = z
  .strictObject({
    podCIDR: range.optional().meta({
      description: "The range of pod addresses.",
      rule: RANGE_RULE,
      default: DEFAULTS.podCIDR,
      examples: ["10.200.0.0/16"],
    }),
    serviceCIDR: serviceRange.optional().meta({
      description: "The range of service addresses.",
      rule: RANGE_RULE,
      default: DEFAULTS.serviceCIDR,
      examples: ["10.201.0.0/16"],
    }),
    cni: z
      .enum(["kuberouter", "calico", "custom"])
      .optional()
      .meta({
        description: "The pod network; custom: a manifest stack brings it.",
        default: DEFAULTS.cni,
        examples: ["calico"],
      }),
    handover: z
      .strictObject({
        mode: z.enum(["automatic", "manual", "disabled"]).meta({
          description: "Who lets go of the bootstrap CNI, once GitOps owns it.",
          examples: ["automatic"],
        }),
        stack: anyText.optional().meta({
          description: "The manifests[] entry that installs the CNI.",
          rule: "needed by manual and automatic",
          examples: ["site-cni"],
        }),
        application: z
          .strictObject({
            name: label.meta({ description: "Name of the Argo CD Application.", examples: ["cni"] }),
            namespace: label.meta({ description: "Its namespace.", examples: ["argocd"] }),
          })
          .optional()
          .meta({
            description: "The Argo CD Application that takes over.",
            rule: "needed by mode automatic",
            examples: [{ name: "cni", namespace: "argocd" }],
          }),
      })
      .optional()
      .meta({
        description: "Hand-over of a custom CNI to GitOps.",
        rule: "only with cni custom",
        examples: [{ mode: "automatic", stack: "site-cni", application: { name: "cni", namespace: "argocd" } }],
      }),
  })
  .meta({
    description: "Pod network.",
    examples: [{ podCIDR: "10.200.0.0/16", serviceCIDR: "10.201.0.0/16", cni: "calico" }],
  });

export const storage = z
  .strictObject({
    type: z
      .enum(["etcd", "sqlite"])
      .optional()
      .meta({
        description: "The datastore. Default: sqlite for single, else etcd.",
        rule: "sqlite only for single, and for controller+worker without join and ha",
        examples: ["etcd"],
      }),
  })
  .meta({ description: "The datastore of the control plane.", examples: [{ type: "etcd" }] });

export const join = z
  .strictObject({
    token: anyText.optional().meta({
      description: "A k0s join token.",
      rule: "of this node's role, its CA not expired; exactly one of token and tokenFrom",
      examples: ["H4sIAAAAAAAA…"],
    }),
    tokenFrom: secretSource.optional().meta(sourceMeta("the token")),
  })
  .meta({
    description: "The cluster to join.",
    rule: "required for a worker, refused for single",
    examples: [{ tokenFrom: { file: "/etc/corium/secrets/join-token", waitFor: "30m" } }],
  });
