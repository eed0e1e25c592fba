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
  if (/^@\d{1,10}$/.test(text)) return undefined;
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
  const parts = text.split(" ");
  const [first = "", second] = parts;
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
  const isSecond = second === undefined || isChain(second, 0, 59_999_999, { read: readSecond, readStep: readSecond });
  return isSecond ? undefined : calendarSays.second(second);
}

interface ChainOptions {
  readonly read?: (text: string) => number | undefined;
  /** Of the step; a second and its step are counted in microseconds. */
  readonly readStep?: (text: string) => number | undefined;
  /** Days counted from the end of the month (`~`). */
  readonly isFromEnd?: boolean;
}

/** `*`, or a comma list of `start[..stop][/repeat]`: calendarspec.c parse_chain and chain_valid. */
function isChain(text: string, from: number, to: number, options: ChainOptions = {}): boolean {
  if (text === "*") return true;
  const { read = readNumber, readStep = readNumber, isFromEnd = false } = options;
  return text.split(",").every((item, _, items) => {
    const match = /^([\d.]+?)(?:\.\.([\d.]+))?(?:\/([\d.]+))?$/.exec(item);
    if (match === null || items.length > 200) return false;
    const start = read(match[1] ?? "");
    const stop = match[2] === undefined ? undefined : read(match[2]);
    const given = match[3] === undefined ? undefined : readStep(match[3]);
    if (start === undefined || (match[2] !== undefined && stop === undefined)) return false;
    if (match[3] !== undefined && (given === undefined || given === 0)) return false;
    if (start < from || start > to) return false;
    if (stop !== undefined) {
      // The end is moved back to the last value that is reached: calendarspec.c normalize_chain.
      const step = given ?? 1;
      return start <= stop && stop - ((stop - start) % step) <= to;
    }
    const repeat = given ?? 0;
    if (repeat > to - from) return false;
    return isFromEnd ? start - repeat >= from : start + repeat <= to;
  });
}

const readNumber = (text: string): number | undefined => (/^\d{1,9}$/.test(text) ? Number(text) : undefined);

/** Two digits are of this century up to 69. */
function readYear(text: string): number | undefined {
  const year = readNumber(text);
  if (year === undefined || year > 99) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

/** Microseconds. */
function readSecond(text: string): number | undefined {
  const match = /^(\d{1,4})(?:\.(\d{1,6}))?$/.exec(text);
  return match === null ? undefined : Number(match[1]) * 1_000_000 + Number((match[2] ?? "").padEnd(6, "0"));
}

function isWeekdays(text: string): boolean {
  return text.split(",").every((item) => {
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
  if (name.toUpperCase() === "UTC") return true;
  try {
    const known = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
    return known.toLowerCase() === name.toLowerCase() ? known === name || isAbbreviation(name) : /^[A-Z]/.test(name);
  } catch {
    return false;
  }
}

const isAbbreviation = (name: string): boolean => /^[A-Z0-9]+$/.test(name);
