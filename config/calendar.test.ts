import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { calendarProblem, isCalendarExpression } from "./calendar.ts";
import { cronToCalendar, isCron } from "./cron.ts";

const good = [
  "daily", "DAILY", "weekly UTC", "semi-annually", "monday", "Mon-Fri 10:00", "Mon..Fri", "Mon,Wed..Fri 10:00",
  "*-*-*", "2027-2-3", "27-2-3", "*-*-* *:*:*", "*:*", "10:00:00.5", "*-*-1..7/2", "*-*~7/1 10:00", "02~03",
  "12-24", "*-02-30", "*-*-* 1..5:00", "Mon 10:00 Europe/Berlin", "10:00 utc", "2069-1-1", "2020..2030-*-*",
  "Tuesday 4:5", "@1395716396", "Mon..Mon", "10:00:00,30", "1/3:0", "*:0..10/5", "*-*~1..7 3:00", "*~1", "1-1-1",
  "2027-1..3,5-*", "10:00 CET", "10:00 US/Eastern", "10:00 GMT", "10:00 EST5EDT", "Sat,Sun  10:00",
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

describe("OnCalendar", () => {
  test.each(good)("%p is taken", (text) => expect(calendarProblem(text)).toBeUndefined());
  test.each(bad)("%p is refused", (text) => expect(calendarProblem(text)).toBeDefined());

  test.skipIf(analyze === null)("systemd-analyze agrees about the table [needs systemd-analyze]", () => {
    for (const text of good) expect([text, systemdTakes(text)]).toEqual([text, true]);
    for (const text of bad) expect([text, systemdTakes(text)]).toEqual([text, false]);
  });

  test.skipIf(analyze === null)("systemd-analyze agrees about made-up expressions [needs systemd-analyze]", () => {
    const number = fc.integer({ min: 0, max: 70 }).map(String);
    const item = fc
      .tuple(number, fc.option(number), fc.option(number))
      .map(
        ([start, stop, repeat]) => `${start}${stop === null ? "" : `..${stop}`}${repeat === null ? "" : `/${repeat}`}`,
      );
    const chain = fc.oneof(
      fc.constant("*"),
      fc.array(item, { minLength: 1, maxLength: 2 }).map((list) => list.join(",")),
    );
    const time = fc.array(chain, { minLength: 2, maxLength: 3 }).map((list) => list.join(":"));
    const date = fc.tuple(chain, fc.constantFrom("-", "~"), chain).map((list) => list.join(""));
    const day = fc.constantFrom("", "Mon ", "Sat..Sun ", "Tue,thu ");
    const whole = fc.tuple(
      day,
      fc.oneof(
        time,
        date,
        fc.tuple(date, time).map((list) => list.join(" ")),
      ),
    );
    fc.assert(
      fc.property(
        whole.map((list) => list.join("")),
        (text) => {
          expect([text, isCalendarExpression(text)]).toEqual([text, systemdTakes(text)]);
        },
      ),
      { numRuns: 150 },
    );
  });
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
