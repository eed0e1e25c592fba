import * as z from "zod";
import { calendarProblem } from "../calendar.ts";
import { cronToCalendar, isCron } from "../cron.ts";
import { parseDuration } from "../duration.ts";
import { parseIp } from "../ip.ts";
import type { Problem } from "../messages/codes.ts";
import { valueSays } from "../messages/values.ts";
import { isDnsName, isLabel } from "../names.ts";
import { isNormalPath } from "../device.ts";

/** What JSON Schema can say of a text: never more than the check itself. */
export interface TextForm {
  readonly pattern?: string;
  readonly maxLength?: number;
}

/** An address with its prefix, of either family. */
export const CIDR_FORM: TextForm = { pattern: "^[0-9A-Fa-f:.]+/[0-9]{1,3}$" };

/** Text with a check that says what is wrong; undefined is fine. */
export function text(check: (value: string) => Problem | undefined, form: TextForm = {}): z.ZodString {
  return z
    .string()
    .superRefine((value, context) => {
      const found = value.trim() === "" ? valueSays.empty() : check(value);
      if (found !== undefined) context.addIssue({ code: "custom", message: found.message, params: { problem: found } });
    })
    .meta({ pattern: "\\S", ...form });
}

export const anyText = text(() => undefined);

export function wholeNumber(min: number, max: number): z.ZodInt {
  return z
    .int()
    .superRefine((value, context) => {
      if (value >= min && value <= max) return;
      const found = valueSays.range(min, max, value);
      context.addIssue({ code: "custom", message: found.message, params: { problem: found } });
    })
    .meta({ minimum: min, maximum: max });
}

export const label = text((value) => (isLabel(value) ? undefined : valueSays.label(value)), {
  pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
  maxLength: 63,
});

export const host = text(
  (value) => (parseIp(value) !== undefined || isDnsName(value) ? undefined : valueSays.host(value)),
  { pattern: "^[A-Za-z0-9:][A-Za-z0-9.:-]*$", maxLength: 253 },
);

export const calendar = text((value) => {
  const why = calendarProblem(value);
  if (why === undefined) return undefined;
  return isCron(value) ? valueSays.cron(cronToCalendar(value)) : valueSays.calendar(why);
});

export const httpsUrl = text((value) => (isUrl(value, ["https:"]) ? undefined : valueSays.httpsUrl()), {
  pattern: "^[Hh][Tt][Tt][Pp][Ss]:\\S+$",
});
export const webUrl = text((value) => (isUrl(value, ["https:", "http:"]) ? undefined : valueSays.webUrl()), {
  pattern: "^[Hh][Tt][Tt][Pp][Ss]?:\\S+$",
});

/** With user and password, a URL would carry a secret into messages and logs. */
function isUrl(value: string, protocols: readonly string[]): boolean {
  if (!URL.canParse(value) || /\s/.test(value)) return false;
  const url = new URL(value);
  return protocols.includes(url.protocol) && url.hostname !== "" && url.username === "" && url.password === "";
}

export const absolutePath = text((value) => (isNormalPath(value) ? undefined : valueSays.absolutePath()), {
  pattern: "^/.*[^/]$",
});

const SOURCE_EXAMPLE = {
  url: "https://seed.example.net/secrets/node-1",
  authFile: "/etc/corium/seed.token",
  waitFor: "30m",
};

/** What is said of a field that is a secret source. */
export const sourceMeta = (what: string): { description: string; rule: string; examples: unknown[] } => ({
  description: `Where ${what} is fetched from.`,
  rule: "exactly one of url and file",
  examples: [SOURCE_EXAMPLE, { file: "/etc/corium/secrets/node-1" }],
});

/** Where a secret is fetched from when it must not stand in the document. */
export const secretSource = z.strictObject({
  url: httpsUrl.optional().meta({
    description: "Where the secret is fetched from.",
    rule: "https, no user or password in it; exactly one of url and file",
    examples: ["https://seed.example.net/secrets/node-1"],
  }),
  file: absolutePath.optional().meta({
    description: "A file on the node that holds the secret.",
    rule: "an absolute path; exactly one of url and file",
    examples: ["/etc/corium/secrets/node-1"],
  }),
  authFile: absolutePath.optional().meta({
    description: "A file on the node whose content is sent along as bearer token.",
    rule: "an absolute path; only with url",
    examples: ["/etc/corium/seed.token"],
  }),
  waitFor: text(
    (value) => {
      const milliseconds = parseDuration(value);
      if (milliseconds === undefined) return valueSays.duration();
      return milliseconds > 0 && milliseconds <= 3_600_000 ? undefined : valueSays.waitRange();
    },
    { pattern: "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$" },
  )
    .optional()
    .meta({
      description: "How long to wait until it is there. Absent: one attempt.",
      rule: "h, m and s in this order, above 0, at most 1h",
      examples: ["90s", "15m", "1m30s"],
    }),
});

/** A map of anything: passed through as it is. */
export const freeMap = z.record(z.string(), z.unknown());
