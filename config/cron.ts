import { isCalendarExpression } from "./calendar.ts";

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const NICKNAMES: Readonly<Record<string, string>> = {
  "@yearly": "yearly",
  "@annually": "yearly",
  "@monthly": "monthly",
  // cron's week starts on Sunday, systemd's `weekly` on Monday.
  "@weekly": "Sun 00:00",
  "@daily": "daily",
  "@midnight": "daily",
  "@hourly": "hourly",
};

/** Whether this was written for cron. */
export const isCron = (text: string): boolean =>
  /^@[a-z]+$/i.test(text.trim()) || /^(?:[\d*/,A-Za-z?L#-]+\s+){4}[\d*/,A-Za-z?L#-]+$/.test(text.trim());

/** The same moments as OnCalendar, where there is such an expression. */
export function cronToCalendar(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed.startsWith("@")) return NICKNAMES[trimmed.toLowerCase()];
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = trimmed.split(/\s+/);
  const days = weekdays(weekday);
  // In cron, a day of the month and a weekday are "or"; in systemd they are "and".
  if (days === undefined || (days !== "" && day !== "*")) return undefined;
  const isEveryDay = day === "*" && month === "*";
  const parts = [field(month, 1, MONTHS), field(day, 1), field(hour, 0), field(minute, 0)];
  if (parts.some((part) => part === undefined)) return undefined;
  const [months, dayOfMonth, hours, minutes] = parts;
  const date = isEveryDay ? "" : `*-${months}-${dayOfMonth} `;
  const calendar = `${days === "" ? "" : `${days} `}${date}${hours}:${minutes}`;
  return isCalendarExpression(calendar) ? calendar : undefined;
}

function field(text: string, first: number, names: readonly string[] = []): string | undefined {
  const items = text.split(",").map((item) => {
    const named = item.replace(/[a-z]+/gi, (name) => String(names.indexOf(name.toLowerCase()) + 1));
    const match = /^(?:(\*)|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/.exec(named);
    if (match === null) return undefined;
    const [, star, from, to, step] = match;
    if (star !== undefined) return step === undefined ? "*" : `${pad(first)}/${step}`;
    const range = to === undefined ? pad(from) : `${pad(from)}..${pad(to)}`;
    return step === undefined ? range : `${range}/${step}`;
  });
  if (items.includes(undefined) || (items.length > 1 && items.includes("*"))) return undefined;
  return items.join(",");
}

/** `""`: every day. */
function weekdays(text: string): string | undefined {
  if (text === "*" || text === "?") return "";
  const names: string[] = [];
  for (const item of text.split(",")) {
    const match = /^(\d|[a-z]{3})(?:-(\d|[a-z]{3}))?$/i.exec(item);
    const from = dayIndex(match?.[1] ?? "");
    if (from < 0) return undefined;
    const to = match?.[2] === undefined ? from : dayIndex(match[2]);
    if (to < from) return undefined;
    for (let at = from; at <= to; at++) names.push(DAYS[at] ?? "");
  }
  const order = DAYS.slice(1);
  const sorted = order.filter((day) => names.includes(day));
  const first = sorted[0];
  const last = sorted.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const isRun = order.indexOf(last) - order.indexOf(first) === sorted.length - 1 && sorted.length > 2;
  return isRun ? `${first}..${last}` : sorted.join(",");
}

function dayIndex(text: string): number {
  return /^[0-7]$/.test(text) ? Number(text) : DAYS.findIndex((day) => day.toLowerCase() === text.toLowerCase());
}

const pad = (text: string | number | undefined): string => String(text).padStart(2, "0");
