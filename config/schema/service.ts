import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { isHostAddress, parseCidr, parseIp } from "../ip.ts";
import { valueSays } from "../messages/values.ts";
import { isLinkName } from "../names.ts";
import {
  absolutePath,
  anyText,
  calendar,
  CIDR_FORM,
  httpsUrl,
  secretSource,
  sourceMeta,
  text,
  wholeNumber,
} from "./fields.ts";

const peerAddress = text((value) => {
  const ip = parseIp(value);
  if (ip === undefined) return valueSays.ip(value);
  return isHostAddress(ip) ? undefined : valueSays.noHostAddress(value);
});

export const ha = z
  .strictObject({
    enabled: z
      .boolean()
      .optional()
      .meta({
        description: "Whether controllers share one address.",
        rule: "not for single or worker; the other fields need it",
        default: false,
        examples: [true],
      }),
    virtualIP: text((value) => {
      const cidr = parseCidr(value);
      if (cidr === undefined) return valueSays.ipWithPrefix(value);
      return isHostAddress(cidr.ip) && cidr.prefix > 0 ? undefined : valueSays.noHostAddress(value);
    }, CIDR_FORM)
      .optional()
      .meta({
        description: "The shared address.",
        rule: "IP/prefix; required; cluster.endpoint must be this address or a name for it",
        examples: ["192.0.2.100/24"],
      }),
    interface: text((value) => (isLinkName(value) ? undefined : valueSays.linkName(value)), {
      pattern: "^[A-Za-z0-9][A-Za-z0-9._:@-]*$",
      maxLength: 15,
    })
      .optional()
      .meta({
        description: "The link it is on. Default: the one with the default route.",
        rule: "name of a network link",
        examples: ["eno1"],
      }),
    virtualRouterID: wholeNumber(1, 255)
      .optional()
      .meta({
        description: "VRRP router id. Default: k0s's own.",
        rule: "1 to 255; the same on all controllers, used by nobody else in that network",
        examples: [120],
      }),
    unicastPeers: z
      .array(peerAddress)
      .optional()
      .meta({
        description: "Addresses of the other controllers, where multicast does not work.",
        rule: "IPs",
        default: [],
        examples: [["192.0.2.12", "192.0.2.13"]],
      }),
    authPass: text((value) => (/^[\x21-\x7e]{1,8}$/.test(value) ? undefined : valueSays.password8()), {
      pattern: "^[!-~]+$",
      maxLength: 8,
    })
      .optional()
      .meta({
        description: "VRRP password, the same on all controllers.",
        rule: "1 to 8 printable ASCII characters; exactly one of authPass and authPassFrom",
        examples: ["8charact"],
      }),
    authPassFrom: secretSource.optional().meta(sourceMeta("the password")),
  })
  .meta({
    description: "One address for all controllers (VRRP, run by k0s).",
    rule: "for controller and controller+worker",
    examples: [
      {
        enabled: true,
        virtualIP: "192.0.2.100/24",
        virtualRouterID: 120,
        authPassFrom: { file: "/etc/corium/secrets/vrrp" },
      },
    ],
  });

export const upgrades = z
  .strictObject({
    automatic: z
      .enum(["none", "download", "apply"])
      .optional()
      .meta({
        description: "What the node does by itself when a release is there.",
        default: DEFAULTS.automatic,
        examples: ["download"],
      }),
    schedule: calendar.optional().meta({
      description: "When it looks.",
      rule: "OnCalendar (systemd.time(7)), no cron; only with automatic",
      default: DEFAULTS.schedule,
      examples: ["Sun 04:00"],
    }),
    source: z
      .strictObject({
        url: httpsUrl.meta({
          description: "Where releases are listed.",
          rule: "https, no user or password in it",
          examples: ["https://releases.example.net/corium"],
        }),
      })
      .optional()
      .meta({
        description: "Where it looks. Default: the image's.",
        examples: [{ url: "https://releases.example.net/corium" }],
      }),
  })
  .meta({ description: "Upgrades of the system.", examples: [{ automatic: "download", schedule: "Sun 04:00" }] });

export const backup = z
  .strictObject({
    enabled: z
      .boolean()
      .optional()
      .meta({
        description: "Whether backups are made.",
        rule: "the other fields need it",
        default: false,
        examples: [true],
      }),
    schedule: calendar.optional().meta({
      description: "When.",
      rule: "OnCalendar (systemd.time(7)), no cron",
      default: DEFAULTS.schedule,
      examples: ["*-*-* 01:30:00"],
    }),
    path: absolutePath.optional().meta({
      description: "The folder they are put in.",
      rule: "an absolute path",
      default: DEFAULTS.backupPath,
      examples: ["/srv/data/backups"],
    }),
    keep: wholeNumber(1, 10_000)
      .optional()
      .meta({
        description: "How many are kept.",
        rule: "1 to 10000",
        default: DEFAULTS.backupKeep,
        examples: [14],
      }),
  })
  .meta({
    description: "Backups of the control plane.",
    rule: "not for a worker",
    examples: [{ enabled: true, schedule: "*-*-* 01:30:00", path: "/srv/data/backups" }],
  });

export const api = z
  .strictObject({
    enabled: z
      .boolean()
      .optional()
      .meta({
        description: "false: no daemon, no port. true without a CA: bootstrap is held until the node is claimed.",
        rule: "false goes with none of the other fields",
        default: true,
        examples: [true],
      }),
    operatorCA: anyText.optional().meta({
      description: "Certificate of the CA whose operators the node obeys; claims it by configuration.",
      rule: "one unexpired PEM certificate with keyCertSign, no key; one of operatorCA and operatorCAFrom",
      examples: ["-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n"],
    }),
    operatorCAFrom: secretSource.optional().meta(sourceMeta("that certificate")),
    insecure: z
      .boolean()
      .optional()
      .meta({
        description: "Maintenance without a claim code: whoever comes first owns the node. For benches only.",
        rule: "only with enabled: true and no CA",
        default: false,
        examples: [true],
      }),
    awaitConfig: z
      .boolean()
      .optional()
      .meta({
        description: "Hold bootstrap until a document comes over the API.",
        rule: "not with the API off",
        default: false,
        examples: [true],
      }),
  })
  .meta({
    description: "The REST API. Block absent: claimable until bootstrapped, bootstrap not held.",
    examples: [{ operatorCAFrom: { file: "/etc/corium/operator-ca.pem" } }],
  });
