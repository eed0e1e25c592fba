import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { valueSays } from "../messages/values.ts";
import { isLabel, isReleaseName, K0S_STACKS } from "../names.ts";
import { anyText, freeMap, label, text, webUrl } from "./fields.ts";

/** Registry with its port, path, tag and digest: what a registry can be asked for. */
const OCI_CHART =
  /^oci:\/\/(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::\d{1,5})?(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)+(?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]{64})?$/;

const chart = text(
  (value) => {
    if (OCI_CHART.test(value) || /^[A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][^\s/:@?#]*$/.test(value)) return undefined;
    return /^[a-z]+:\/\/.*@(?!sha256:)/i.test(value) ? valueSays.chartWithUser() : valueSays.chart(value);
  },
  { pattern: "^(oci://[^/\\s]+/)?[A-Za-z0-9]\\S*$" },
);

export const addons = z
  .array(
    z.strictObject({
      name: text((value) => (isReleaseName(value) ? undefined : valueSays.releaseName(value)), {
        pattern: "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        maxLength: 53,
      }).meta({
        description: "Name of the Helm release.",
        rule: "a-z, 0-9, hyphens and dots, at most 53; unique",
        examples: ["cert-manager"],
      }),
      chart: chart.meta({
        description: "What is installed.",
        rule: "repository/chart, the repository declared by some add-on; or oci://…",
        examples: ["jetstack/cert-manager", "oci://registry.example.net/charts/whoami"],
      }),
      version: anyText.optional().meta({
        description: "Version of the chart. Default: the newest.",
        rule: "text: quote 1.10, or it loses its zero",
        examples: ["v1.16.2"],
      }),
      namespace: label.optional().meta({
        description: "Where it is installed.",
        rule: "a lower-case DNS label",
        default: DEFAULTS.addonNamespace,
        examples: ["cert-manager"],
      }),
      repository: z
        .strictObject({
          name: text(
            (value) => (/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(value) ? undefined : valueSays.repositoryName(value)),
            { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*$" },
          ).meta({
            description: "Name of the repository.",
            rule: "letters, digits, dots, _ and -; one name, one URL",
            examples: ["jetstack"],
          }),
          url: webUrl.meta({
            description: "Its address.",
            rule: "https or http, no user or password in it",
            examples: ["https://charts.example.com/jetstack"],
          }),
        })
        .optional()
        .meta({
          description: "Declares a chart repository, for all add-ons.",
          examples: [{ name: "jetstack", url: "https://charts.example.com/jetstack" }],
        }),
      values: freeMap.optional().meta({
        description: "Values of the chart, passed through.",
        rule: "a map",
        examples: [{ crds: { enabled: true } }],
      }),
    }),
  )
  .meta({
    description: "Helm charts that k0s installs.",
    rule: "not for a worker",
    default: [],
    examples: [
      [
        {
          name: "cert-manager",
          chart: "jetstack/cert-manager",
          version: "v1.16.2",
          namespace: "cert-manager",
          repository: { name: "jetstack", url: "https://charts.example.com/jetstack" },
        },
      ],
    ],
  });

const stackName = text(
  (value) => {
    if (K0S_STACKS.includes(value)) return valueSays.k0sStack(value);
    return isLabel(value) ? undefined : valueSays.label(value);
  },
  { pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", maxLength: 63 },
);

const fileName = text(
  (value) =>
    /^[A-Za-z0-9][A-Za-z0-9._-]*\.yaml$/.test(value) && value.length <= 200
      ? undefined
      : valueSays.manifestFileName(value),
  { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*[.]yaml$", maxLength: 200 },
);

const MANIFEST_EXAMPLE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: site-cni\n";

export const manifests = z
  .array(
    z.strictObject({
      name: stackName.meta({
        description: "Name of the stack.",
        rule: "a lower-case DNS label; unique, and none of k0s's own",
        examples: ["site-cni"],
      }),
      files: z
        .array(
          z.strictObject({
            name: fileName.meta({
              description: "Name of the file.",
              rule: "no slash, ends in .yaml (k0s reads nothing else); unique in the stack",
              examples: ["namespace.yaml"],
            }),
            content: z.string().meta({
              description: "The objects.",
              rule: "YAML documents, each with apiVersion and kind",
              examples: [MANIFEST_EXAMPLE],
            }),
          }),
        )
        .meta({
          description: "The files of the stack.",
          rule: "at least one",
          examples: [[{ name: "namespace.yaml", content: MANIFEST_EXAMPLE }]],
        }),
    }),
  )
  .meta({
    description: "Manifest stacks that k0s applies.",
    rule: "not for a worker",
    default: [],
    examples: [[{ name: "site-cni", files: [{ name: "namespace.yaml", content: MANIFEST_EXAMPLE }] }]],
  });

const PATCH_EXAMPLE = { spec: { images: { repository: "registry.example.net/k0s" } } };

export const k0s = z
  .strictObject({
    patch: freeMap.optional().meta({
      description: "Merged last into k0s.yaml, uninterpreted: maps by key, all else is replaced.",
      rule: "keys that k0s does not know are warnings",
      default: {},
      examples: [PATCH_EXAMPLE],
    }),
  })
  .meta({
    description: "The way around Corium, for what it does not model.",
    examples: [{ patch: PATCH_EXAMPLE }],
  });

export const kubernetes = z
  .strictObject({
    version: text(
      (value) =>
        /^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)\+k0s\.(0|[1-9]\d*)$/.test(value)
          ? undefined
          : valueSays.kubernetesVersion(value),
      { pattern: "^v[0-9]+[.][0-9]+[.][0-9]+[+]k0s[.][0-9]+$" },
    )
      .optional()
      .meta({
        description: "Asserts the k0s of the image. Default: the image's.",
        rule: "vX.Y.Z+k0s.N; a node whose image holds another one refuses",
        examples: ["v1.36.4+k0s.1"],
      }),
  })
  .meta({
    description: "Which Kubernetes the image must hold.",
    examples: [{ version: "v1.36.4+k0s.1" }],
  });
