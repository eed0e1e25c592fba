import * as z from "zod";
import { valueSays } from "../messages/values.ts";
import { isLabelValue, isQualifiedName } from "../names.ts";
import { label, text } from "./fields.ts";

const labelValue = z.string().superRefine((value, context) => {
  if (isLabelValue(value)) return;
  const found = valueSays.labelValue(value);
  context.addIssue({ code: "custom", message: found.message, params: { problem: found } });
});

export const node = z
  .strictObject({
    name: label.optional().meta({ description: "Host name of the node. Default: derived from the machine." }),
    labels: z
      .record(z.string(), labelValue)
      .optional()
      .meta({ description: "Kubernetes labels that the node registers with.", default: {} }),
    taints: z
      .array(
        z.strictObject({
          key: text((value) => (isQualifiedName(value) ? undefined : valueSays.labelKey(value))).meta({
            description: "Key of the taint.",
          }),
          value: labelValue.optional().meta({ description: "Value of the taint." }),
          effect: z
            .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
            .meta({ description: "What it does to pods that do not tolerate it." }),
        }),
      )
      .optional()
      .meta({ description: "Taints that the node registers with.", default: [] }),
  })
  .meta({ description: "The node itself." });
