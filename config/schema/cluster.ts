import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { maskCidr, parseCidr } from "../ip.ts";
import { valueSays } from "../messages/values.ts";
import { host, label, secretSource, text, anyText } from "./fields.ts";

export const role = z.enum(["single", "controller", "controller+worker", "worker"]).meta({
  description: "What this node is in its cluster. May be absent while the API is on: the node then waits to be told.",
});

export const cluster = z
  .strictObject({
    name: label.optional().meta({ description: "A DNS label.", default: DEFAULTS.clusterName }),
    endpoint: host.optional().meta({
      description:
        "Where clients reach the API server: host name or IP, no port. Required with ha; becomes the first SAN.",
    }),
    subjectAltNames: z.array(host).optional().meta({
      description: "Further DNS names and IP addresses of the API server's certificate.",
      default: [],
    }),
  })
  .meta({ description: "The cluster that this node founds or joins." });

const range = text((value) => {
  const cidr = parseCidr(value);
  if (cidr === undefined) return valueSays.range4(value);
  if (cidr.ip.family === 6) return valueSays.ipv6Range(value);
  return cidr.hasHostBits ? valueSays.hostBits(value, maskCidr(value)) : undefined;
});

export const network = z
  .strictObject({
    podCIDR: range.optional().meta({ description: "The range of pod addresses.", default: DEFAULTS.podCIDR }),
    serviceCIDR: range
      .optional()
      .meta({ description: "The range of service addresses.", default: DEFAULTS.serviceCIDR }),
    cni: z
      .enum(["kuberouter", "calico", "custom"])
      .optional()
      .meta({ description: "The pod network; custom: a manifest stack brings it.", default: DEFAULTS.cni }),
    handover: z
      .strictObject({
        mode: z
          .enum(["automatic", "manual", "disabled"])
          .meta({ description: "Who lets go of the bootstrap CNI, once GitOps owns it." }),
        stack: anyText.optional().meta({ description: "The manifests[] entry that installs the CNI." }),
        application: z
          .strictObject({
            name: label.meta({ description: "Name of the Argo CD Application." }),
            namespace: label.meta({ description: "Its namespace." }),
          })
          .optional()
          .meta({ description: "The Argo CD Application that takes over; needed by mode automatic." }),
      })
      .optional()
      .meta({ description: "Hand-over of a custom CNI to GitOps." }),
  })
  .meta({ description: "Pod network." });

export const storage = z
  .strictObject({
    type: z
      .enum(["etcd", "sqlite"])
      .optional()
      .meta({ description: "The datastore. Default: sqlite for single, else etcd." }),
  })
  .meta({ description: "The datastore of the control plane." });

export const join = z
  .strictObject({
    token: anyText.optional().meta({ description: "A k0s join token; a secret. Exactly one of token and tokenFrom." }),
    tokenFrom: secretSource.optional().meta({ description: "Where the token is fetched from." }),
  })
  .meta({ description: "The cluster to join; required for a worker." });
