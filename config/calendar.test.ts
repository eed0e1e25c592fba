import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { calendarProblem, isCalendarExpression } from "./calendar.ts";
import { cronToCalendar, isCron } from "./cron.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const good = [
  "daily", "DAILY", "weekly UTC", "semi-annually", "monday", "Mon-Fri 10:00", "Mon..Fri", "Mon,Wed..Fri 10:00",
  "*-*-*", "2027-2-3", "27-2-3", "*-*-* *:*:*", "*:*", "10:00:00.5", "*-*-1..7/2", "*-*~7/1 10:00", "02~03",
  "12-24", "*-02-30", "*-*-* 1..5:00", "Mon 10:00 Europe/Berlin", "10:00 utc", "2069-1-1", "2020..2030-*-*",
  "Tuesday 4:5", "@1395716396", "Mon..Mon", "10:00:00,30", "1/3:0", "*:0..10/5", "*-*~1..7 3:00", "*~1", "1-1-1",
  "2027-1..3,5-*", "10:00 CET", "10:00 US/Eastern", "10:00 GMT", "10:00 EST5EDT", "Sat,Sun  10:00",
  "anually", "daily localtime",
]; // prettier-ignore
const bad = [
  "Fri..Mon 10:00", "10", "Mon, Tue 10:00", "10:00 europe/berlin", "1969-1-1", "2200-1-1", "*-*-* 24:00",
  "10:0/70", "10:00/0", "*-*-*/2", "*/2-*-*", "5..3:00", "10:00:60", "now", "", " ", "10:00  UTC", "*-*-*T10:00",
  "2027-01-01T10:00:00", "*-*-0", "*-0-1", "daily daily", "*-*~32", "10:00 Europe", "10:00:", "10:", "*:*:*/5",
  "~1", "100-1-1", "10:00 GMT+1", "10:00 -05", "0 3 * * *", "nightly",
]; // prettier-ignore

const analyze = Bun.which("systemd-analyze");
const systemdTakes = (text: string): boolean =>
  Bun.spawnSync([analyze ?? "false", "calendar", "--", text], { env: { LC_ALL: "C", PATH: process.env["PATH"] } })
    .exitCode === 0;

/** Asks about many in one call; what it takes it explains on stdout, what it refuses it quotes on stderr. */
function systemdRefuses(texts: readonly string[]): ReadonlySet<string> {
  const refused = new Set<string>();
  for (let at = 0; at < texts.length; at += 250) {
    const argv = [analyze ?? "false", "calendar", "--", ...texts.slice(at, at + 250)];
    const { stderr } = Bun.spawnSync(argv, { env: { LC_ALL: "C", PATH: process.env["PATH"] } });
    const failed = /^Failed to parse calendar (?:specification|expression) '(.*)': /gm;
    for (const [, text = ""] of stderr.toString().matchAll(failed)) refused.add(text);
  }
  return refused;
}

const number = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 70 }).map(String) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 31 }).map((value) => String(value).padStart(2, "0")) },
  { weight: 1, arbitrary: fc.integer({ min: 1960, max: 2210 }).map(String) },
  { weight: 1, arbitrary: fc.constantFrom("1.5", "0.000001", "59.9999999", "007", "99999999999", "", "-1") },
);
const item = fc
  .tuple(number, fc.option(number), fc.option(number, { freq: 2 }))
  .map(([start, stop, step]) => `${start}${stop === null ? "" : `..${stop}`}${step === null ? "" : `/${step}`}`);
const chain = fc.oneof(
  fc.constantFrom("*", "*", "*", "*/2", "00/5", "1..5"),
  fc.array(item, { minLength: 1, maxLength: 3 }).map((list) => list.join(",")),
);
const time = fc.array(chain, { minLength: 1, maxLength: 4 }).map((list) => list.join(":"));
const date = fc.oneof(
  fc.tuple(chain, fc.constantFrom("-", "~"), chain).map((list) => list.join("")),
  fc.tuple(chain, fc.constant("-"), chain, fc.constantFrom("-", "~"), chain).map((list) => list.join("")),
);
const dayName = fc.constantFrom("Mon", "tue", "WED", "Thursday", "Fri", "Sat", "sunday", "Su", "Tues", "Montag");
const days = fc
  .array(
    fc.oneof(
      dayName,
      fc.tuple(dayName, fc.constantFrom("..", "-"), dayName).map((list) => list.join("")),
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((list) => list.join(","));
const zone = fc.constantFrom("UTC", "utc", "Europe/Berlin", "europe/berlin", "CET", "EST5EDT", "GMT", "Zulu", "Nowhere", "+02:00", "Z"); // prettier-ignore
const shorthand = fc.constantFrom("daily", "Weekly", "hourly", "minutely", "quarterly", "semiannually", "biannually", "nightly", "@12", "@1.5", "@-1"); // prettier-ignore
const body = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(date, time).map((list) => list.join(" ")) },
  { weight: 3, arbitrary: time },
  { weight: 2, arbitrary: date },
  { weight: 1, arbitrary: shorthand },
);
const whole = fc
  .tuple(fc.option(days, { freq: 1 }), fc.option(body, { freq: 8 }), fc.option(zone, { freq: 1 }))
  .map((parts) => parts.filter((part) => part !== null).join(" "));
/** A third of them with a slip of the hand. */
const expression = fc
  .tuple(whole, fc.nat(2), fc.nat(), fc.constantFrom("", " ", "-", ":", ",", "..", "/", "~", "*", "0", "x", "T", "+"))
  .map(([text, slips, at, added]) => {
    const offset = at % (text.length + 1);
    return slips === 0 ? text.slice(0, offset) + added + text.slice(offset + (added === "" ? 1 : 0)) : text;
  });

describe("OnCalendar", () => {
  test.each(good)("%p is taken", (text) => expect(calendarProblem(text)).toBeUndefined());
  test.each(bad)("%p is refused", (text) => expect(calendarProblem(text)).toBeDefined());

  test.skipIf(analyze === null)("systemd-analyze agrees about the table [needs systemd-analyze]", () => {
    for (const text of good) expect([text, systemdTakes(text)]).toEqual([text, true]);
    for (const text of bad) expect([text, systemdTakes(text)]).toEqual([text, false]);
  });

  test.skipIf(analyze === null)(
    "systemd-analyze agrees about 2,000 made-up expressions [needs systemd-analyze]",
    () => {
      const seed = Number(process.env["CORIUM_FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
      const made = fc.sample(expression, { numRuns: 2000, seed });
      const refused = systemdRefuses(made);
      const differing = made.filter((text) => isCalendarExpression(text) === refused.has(text));
      expect({ seed, differing }).toEqual({ seed, differing: [] });
      // Neither verdict is that of all.
      expect(refused.size).toBeGreaterThan(200);
      expect(made.length - refused.size).toBeGreaterThan(200);
    },
  );
});

describe("cron", () => {
  test.each([
    ["0 3 * * *", "03:00"],
    ["30 2 * * 0", "Sun 02:30"],
    ["0 22 * * 1-5", "Mon..Fri 22:00"],
    ["*/5 * * * *", "*:00/5"],
    ["0 4 1 * *", "*-*-01 04:00"],
    ["0 4 1 jan,jul *", "*-01,07-01 04:00"],
    ["15 1 * * sat,sun", "Sat,Sun 01:15"],
    ["@weekly", "Sun 00:00"],
  ])("%p is %p", (cron, calendar) => {
    expect(isCron(cron)).toBe(true);
    expect(cronToCalendar(cron)).toBe(calendar);
    expect(isCalendarExpression(calendar)).toBe(true);
  });

  test("what OnCalendar cannot say gets no equivalent", () => {
    expect(cronToCalendar("@reboot")).toBeUndefined();
    expect(cronToCalendar("0 0 13 * 5")).toBeUndefined();
    expect(cronToCalendar("0 0 L * *")).toBeUndefined();
  });
});
