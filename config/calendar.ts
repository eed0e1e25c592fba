/**
 * OnCalendar expressions, as systemd.time(7) "CALENDAR EVENTS" and systemd's calendarspec.c have them. The test
 * beside this file asks `systemd-analyze calendar` whether it agrees, where that is installed.
 */
import { calendarSays } from "./messages/calendar.ts";

const SHORTHANDS = new Set([
  "minutely",
  "hourly",
  "daily",
  "monthly",
  "weekly",
  "yearly",
  "annually",
  // A slip of systemd's own, which it keeps.
  "anually",
  "quarterly",
  "semi-annually",
  "semiannually",
  "bi-annually",
  "biannually",
]);

const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

export const isCalendarExpression = (text: string): boolean => calendarProblem(text) === undefined;

/** What is wrong with the expression, in words; undefined when systemd would take it. */
export function calendarProblem(text: string): string | undefined {
  if (text.trim() === "") return calendarSays.empty;
  if (/^@ *\+?\d{1,10}$/.test(text)) return undefined;
  const zone = / (\S+)$/.exec(text);
  if (zone?.[1] !== undefined && /^[A-Za-z][A-Za-z0-9_+/-]*$/.test(zone[1]) && !isWeekdays(zone[1])) {
    return isTimeZone(zone[1]) ? bodyProblem(text.slice(0, zone.index)) : calendarSays.timeZone(zone[1]);
  }
  return bodyProblem(text);
}

function bodyProblem(text: string): string | undefined {
  if (SHORTHANDS.has(text.toLowerCase())) return undefined;
  if (/^[A-Za-z]/.test(text)) {
    const [, days = "", rest] = /^(\S+)(?: +(\S.*))?$/.exec(text) ?? [];
    if (!isWeekdays(days)) return calendarSays.word(days || text);
    return rest === undefined ? undefined : dateAndTimeProblem(rest);
  }
  return dateAndTimeProblem(text);
}

function dateAndTimeProblem(text: string): string | undefined {
  const parts = text.split(/ +/);
  const [first = "", second, third] = parts;
  // Blanks may follow a date, but not a time.
  if (second === "" && third === undefined && !first.includes(":")) return dateProblem(first);
  if (parts.length > 2) return calendarSays.parts(text);
  if (second !== undefined) return dateProblem(first) ?? timeProblem(second);
  return first.includes(":") ? timeProblem(first) : dateProblem(first);
}

function dateProblem(text: string): string | undefined {
  const match = /^(?:(?:([^-~]+)-)?([^-~]+)([-~])([^-~]+))$/.exec(text);
  if (match === null) return calendarSays.date(text);
  const [, year, month = "", separator, day = ""] = match;
  if (year !== undefined && !isChain(year, 1970, 2199, { read: readYear })) return calendarSays.year(year);
  if (!isChain(month, 1, 12)) return calendarSays.month(month);
  const isFromEnd = separator === "~";
  // Every month has 28 days; further back from the end systemd refuses.
  const last = isFromEnd ? 28 : 31;
  return isChain(day, 1, last, { isFromEnd }) ? undefined : calendarSays.day(day, last);
}

function timeProblem(text: string): string | undefined {
  const [hour = "", minute, second, ...more] = text.split(":");
  if (minute === undefined || more.length > 0) return calendarSays.time(text);
  if (!isChain(hour, 0, 23)) return calendarSays.hour(hour);
  if (!isChain(minute, 0, 59)) return calendarSays.minute(minute);
  const options = { read: readSecond, readStep: readSecond, step: MICROSECONDS };
  const isSecond = second === undefined || isChain(second, 0, 60 * MICROSECONDS - 1, options);
  return isSecond ? undefined : calendarSays.second(second);
}

interface ChainOptions {
  readonly read?: (text: string) => number | undefined;
  /** Of the step; a second and its step are counted in microseconds. */
  readonly readStep?: (text: string) => number | undefined;
  /** What a range without a step goes by. */
  readonly step?: number;
  /** Days counted from the end of the month (`~`). */
  readonly isFromEnd?: boolean;
}

interface Component {
  readonly start: number;
  readonly stop?: number;
  readonly step: number;
}

/** CALENDARSPEC_COMPONENTS_MAX. */
const MOST_COMPONENTS = 240;

/** `*`, or a comma list of `start[..stop][/step]`: calendarspec.c parse_chain, normalize_chain and chain_valid. */
function isChain(text: string, from: number, to: number, options: ChainOptions = {}): boolean {
  if (text === "*") return true;
  const items = text.split(",");
  if (items.length > MOST_COMPONENTS) return false;
  const chain = items.map((item) => readComponent(item, options));
  const unique = new Map(chain.map((component) => [JSON.stringify(component), component]));
  const sorted = [...unique.values()].toSorted((a, b) => (a?.start ?? 0) - (b?.start ?? 0));
  return sorted.every((component, index) => {
    if (component === undefined) return false;
    const { start, stop, step } = component;
    // Each day counted from the end takes three off what the next one may be.
    const last = options.isFromEnd === true ? to - 3 * index : to;
    if (start < from || start > last || step > last - from) return false;
    if (stop !== undefined) return stop <= last && start + step <= stop;
    return options.isFromEnd === true ? start - step >= from : start + step <= last;
  });
}

function readComponent(item: string, options: ChainOptions): Component | undefined {
  const { read = readNumber, readStep = readNumber, step: usual = 1 } = options;
  const match = /^([\d.]+?)(?:\.\.([\d.]+))?(?:\/([\d.]+))?$/.exec(item);
  const start = read(match?.[1] ?? "");
  const stop = match?.[2] === undefined ? undefined : read(match[2]);
  const step = match?.[3] === undefined ? undefined : readStep(match[3]);
  if (match === null || start === undefined || (match[2] !== undefined && stop === undefined)) return undefined;
  if (match[3] !== undefined && (step === undefined || step === 0)) return undefined;
  if (stop === undefined) return { start, step: step ?? 0 };
  // Fractions of one step are refused where the step is not spelled out.
  if (stop < start || (step === undefined && usual > 1 && stop - start < usual)) return undefined;
  // The end is moved back to the last value that is reached; a range of one value is that value.
  const reached = stop - ((stop - start) % (step ?? usual));
  return reached === start ? { start, step: 0 } : { start, stop: reached, step: step ?? usual };
}

const readNumber = (text: string): number | undefined => (/^\d{1,9}$/.test(text) ? Number(text) : undefined);

/** Two digits are of this century up to 69. */
function readYear(text: string): number | undefined {
  const year = readNumber(text);
  if (year === undefined || year > 99) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

const MICROSECONDS = 1_000_000;

/** Microseconds, the seventh digit rounded; systemd counts them in an int. */
function readSecond(text: string): number | undefined {
  const match = /^(\d{1,4})(?:\.(\d+))?$/.exec(text);
  if (match === null) return undefined;
  const digits = (match[2] ?? "").padEnd(7, "0");
  const value = Number(match[1]) * MICROSECONDS + Number(digits.slice(0, 6)) + (Number(digits[6]) >= 5 ? 1 : 0);
  return value <= 0x7f_ff_ff_ff ? value : undefined;
}

function isWeekdays(text: string): boolean {
  // One comma too many at the end is nothing to systemd.
  return text
    .replace(/,$/, "")
    .split(",")
    .every((item) => {
      const [, first = "", last] = /^([A-Za-z]+)(?:(?:\.\.|-)([A-Za-z]+))?$/.exec(item) ?? [];
      const from = weekday(first);
      const to = last === undefined ? from : weekday(last);
      return from >= 0 && to >= from;
    });
}

function weekday(text: string): number {
  const name = text.toLowerCase();
  return WEEKDAYS.findIndex((day) => day === name || day.slice(0, 3) === name);
}

/** systemd looks for the file in /usr/share/zoneinfo, so case matters there; the runtime's own list decides here. */
function isTimeZone(name: string): boolean {
  if (name.toUpperCase() === "UTC" || name === "localtime") return true;
  // `posix/…` and `right/…` are in Debian's tzdata-legacy since 13: a node has none of them.
  try {
    const known = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
    return known.toLowerCase() === name.toLowerCase() ? known === name || isAbbreviation(name) : /^[A-Z]/.test(name);
  } catch {
    return false;
  }
}

const isAbbreviation = (name: string): boolean => /^[A-Z0-9]+$/.test(name);
