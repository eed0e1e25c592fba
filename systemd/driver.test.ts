import { expect, test } from "bun:test";
import type { AppError } from "../kit/app-error.ts";
import { formatError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { systemdExecutors } from "./driver.ts";
import { unitsStep } from "./plan.ts";

const value = <T>(result: Result<T, AppError>): T => {
  if (!result.ok) throw new Error(formatError(result.error));
  return result.value;
};

const step = unitsStep({
  id: "timers",
  title: "install timers",
  files: [
    { path: "/etc/systemd/system/a.timer", mode: 0o644, content: "[Timer]\nOnCalendar=daily\n" },
    { path: "/etc/systemd/system/a.service", mode: 0o644, content: "[Service]\nExecStart=true\n" },
  ],
  enable: ["a.timer"],
  start: ["a.timer"],
});

test("units are written, enabled, kept and started; a second run writes nothing", async () => {
  const host = fakeHost();
  const { "systemd:units": executor } = systemdExecutors;
  const context = { host, secrets: new Map(), report: () => {} };
  expect(value(await executor.check(step, context))).toBe("todo");
  value(await executor.run(step, context));
  expect(value(await executor.check(step, context))).toBe("done");
  expect(host.calls.filter((call) => call.startsWith("systemd.")).slice(-8)).toContain("systemd.start a.timer");
  const writes = (): number => host.calls.filter((call) => call.startsWith("files.write")).length;
  expect(writes()).toBe(2);
  value(await executor.run(step, context));
  expect(writes()).toBe(2);
  host.boot();
  expect(host.text("/etc/systemd/system/a.timer")).toBe(step.files[0]?.content);
});

test("one unit file that differs is the only one written", async () => {
  const host = fakeHost();
  const context = { host, secrets: new Map(), report: () => {} };
  const { "systemd:units": executor } = systemdExecutors;
  value(await executor.run(step, context));
  host.put("/etc/systemd/system/a.timer", "[Timer]\nOnCalendar=weekly\n");
  expect(value(await executor.check(step, context))).toBe("todo");
  const from = host.calls.length;
  value(await executor.run(step, context));
  expect(host.calls.slice(from).filter((call) => call.startsWith("files.write"))).toEqual([
    "files.write /etc/systemd/system/a.timer",
  ]);
});
