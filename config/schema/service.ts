import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { parseCidr } from "../ip.ts";
import { valueSays } from "../messages/values.ts";
import { isLinkName } from "../names.ts";
import { absolutePath, anyText, calendar, httpsUrl, ipAddress, secretSource, text, wholeNumber } from "./fields.ts";

export const ha = z
  .strictObject({
    enabled: z.boolean().optional().meta({
      description: "Whether controllers share one address; not for single or worker.",
      default: false,
    }),
    virtualIP: text((value) => (parseCidr(value) === undefined ? valueSays.ipWithPrefix(value) : undefined))
      .optional()
      .meta({ description: "The shared address with its prefix length." }),
    interface: text((value) => (isLinkName(value) ? undefined : valueSays.linkName(value)))
      .optional()
      .meta({ description: "The link it is on. Default: the one with the default route." }),
    virtualRouterID: wholeNumber(1, 255).optional().meta({
      description: "VRRP router id, the same on all controllers and used by nobody else in that network.",
    }),
    unicastPeers: z.array(ipAddress).optional().meta({
      description: "Addresses of the other controllers, where multicast does not work.",
      default: [],
    }),
    authPass: text((value) => (/^[\x21-\x7e]{1,8}$/.test(value) ? undefined : valueSays.password8()))
      .optional()
      .meta({
        description: "VRRP password, at most 8 characters; a secret. Exactly one of authPass and authPassFrom.",
      }),
    authPassFrom: secretSource.optional().meta({ description: "Where the password is fetched from." }),
  })
  .meta({ description: "One address for all controllers (VRRP, run by k0s)." });

export const upgrades = z
  .strictObject({
    automatic: z
      .enum(["none", "download", "apply"])
      .optional()
      .meta({ description: "What the node does by itself when a release is there.", default: DEFAULTS.automatic }),
    schedule: calendar.optional().meta({ description: "OnCalendar: when it looks.", default: DEFAULTS.schedule }),
    source: z
      .strictObject({ url: httpsUrl.meta({ description: "An https URL." }) })
      .optional()
      .meta({ description: "Where it looks. Default: the image's." }),
  })
  .meta({ description: "Upgrades of the system." });

export const backup = z
  .strictObject({
    enabled: z.boolean().optional().meta({ description: "Whether backups are made.", default: false }),
    schedule: calendar.optional().meta({ description: "OnCalendar: when.", default: DEFAULTS.schedule }),
    path: absolutePath.optional().meta({ description: "The folder they are put in.", default: DEFAULTS.backupPath }),
    keep: wholeNumber(1, 10_000).optional().meta({ description: "How many are kept.", default: DEFAULTS.backupKeep }),
  })
  .meta({ description: "Backups of the control plane; controllers only." });

export const api = z
  .strictObject({
    enabled: z.boolean().optional().meta({
      description: "false: no daemon, no port. true without a CA: bootstrap is held until the node is claimed.",
      default: true,
    }),
    operatorCA: anyText.optional().meta({ description: "PEM certificate of the CA whose operators the node obeys." }),
    operatorCAFrom: secretSource.optional().meta({ description: "Where that certificate is fetched from." }),
    insecure: z.boolean().optional().meta({
      description: "Maintenance without a claim code: whoever comes first owns the node. For benches only.",
      default: false,
    }),
    awaitConfig: z.boolean().optional().meta({
      description: "Hold bootstrap until a document comes over the API.",
      default: false,
    }),
  })
  .meta({ description: "The REST API. Block absent: claimable until bootstrapped, bootstrap not held." });
