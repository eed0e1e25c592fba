import * as z from "zod";
import { valueSays } from "../messages/values.ts";
import { isLabelValue, isQualifiedName } from "../names.ts";
import { label, text } from "./fields.ts";

const labelValue = z
  .string()
  .superRefine((value, context) => {
    if (isLabelValue(value)) return;
    const found = valueSays.labelValue(value);
    context.addIssue({ code: "custom", message: found.message, params: { problem: found } });
  })
  .meta({ pattern: "^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$", maxLength: 63 });

export const node = z
  .strictObject({
    name: label.optional().meta({
      description: "Host name of the node. Default: derived from the machine.",
      rule: "a lower-case DNS label, at most 63",
      examples: ["harbour-1"],
    }),
    labels: z
      .record(z.string(), labelValue)
      .optional()
      .meta({
        description: "Kubernetes labels that the node registers with.",
        rule: "Kubernetes label syntax; none that a kubelet may not give itself",
        default: {},
        examples: [{ "example.com/site": "north", pool: "press" }],
      }),
    taints: z
      .array(
        z.strictObject({
          key: text((value) => (isQualifiedName(value) ? undefined : valueSays.labelKey(value))).meta({
            description: "Key of the taint.",
            rule: "[prefix/]name, no second one with the same effect",
            examples: ["dedicated"],
          }),
          value: labelValue.optional().meta({
            description: "Value of the taint.",
            rule: "Kubernetes label value",
            examples: ["press"],
          }),
          effect: z
            .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
            .meta({ description: "What it does to pods that do not tolerate it.", examples: ["NoSchedule"] }),
        }),
      )
      .optional()
      .meta({
        description: "Taints that the node registers with.",
        default: [],
        examples: [[{ key: "dedicated", value: "press", effect: "NoSchedule" }]],
      }),
  })
  .meta({
    description: "The node itself.",
    examples: [{ name: "harbour-1", labels: { "example.com/site": "north" } }],
  });
