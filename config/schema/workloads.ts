import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { valueSays } from "../messages/values.ts";
import { isLabel, isReleaseName, K0S_STACKS } from "../names.ts";
import { anyText, freeMap, label, text, webUrl } from "./fields.ts";

const chart = text((value) =>
  /^oci:\/\/[^\s/]+\/\S+$/.test(value) || /^[^\s/:]+\/[^\s/:]+$/.test(value) ? undefined : valueSays.chart(value),
);

export const addons = z
  .array(
    z.strictObject({
      name: text((value) => (isReleaseName(value) ? undefined : valueSays.releaseName(value))).meta({
        description: "Name of the Helm release; unique.",
      }),
      chart: chart.meta({ description: "`repository/chart`, the repository declared by some add-on; or `oci://…`." }),
      version: anyText.optional().meta({ description: "Version of the chart; quote it." }),
      namespace: label.optional().meta({ description: "Where it is installed.", default: DEFAULTS.addonNamespace }),
      repository: z
        .strictObject({
          name: text((value) =>
            /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(value) ? undefined : valueSays.storageName(value),
          ).meta({ description: "Name of the repository." }),
          url: webUrl.meta({ description: "Its address." }),
        })
        .optional()
        .meta({ description: "Declares a chart repository, for all add-ons." }),
      values: freeMap.optional().meta({ description: "Values of the chart, passed through." }),
    }),
  )
  .meta({ description: "Helm charts that k0s installs; controllers only.", default: [] });

const stackName = text((value) => {
  if (K0S_STACKS.includes(value)) return valueSays.k0sStack(value);
  return isLabel(value) ? undefined : valueSays.label(value);
});

const fileName = text((value) =>
  /^[A-Za-z0-9][A-Za-z0-9._-]*\.yaml$/.test(value) && value.length <= 200
    ? undefined
    : valueSays.manifestFileName(value),
);

export const manifests = z
  .array(
    z.strictObject({
      name: stackName.meta({ description: "Name of the stack; unique, and none of k0s's own." }),
      files: z
        .array(
          z.strictObject({
            name: fileName.meta({ description: "File name, ending in `.yaml`; unique in the stack." }),
            content: z.string().meta({ description: "YAML documents, each with apiVersion and kind." }),
          }),
        )
        .meta({ description: "The files of the stack." }),
    }),
  )
  .meta({ description: "Manifest stacks that k0s applies; controllers only.", default: [] });

export const k0s = z
  .strictObject({
    patch: freeMap.optional().meta({ description: "Merged last into k0s.yaml, uninterpreted.", default: {} }),
  })
  .meta({ description: "The way around Corium, for what it does not model." });

export const kubernetes = z
  .strictObject({
    version: text((value) =>
      /^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)\+k0s\.(0|[1-9]\d*)$/.test(value)
        ? undefined
        : valueSays.kubernetesVersion(value),
    )
      .optional()
      .meta({ description: "Asserts the k0s of the image, e.g. `v1.36.3+k0s.2`. Default: the image's." }),
  })
  .meta({ description: "Which Kubernetes the image must hold." });
