import { expect, test } from "bun:test";

import { fakeHost } from "../test/support/fake-host.ts";
import { parseUnitStatus, realSystemd } from "./systemd.ts";

test("a unit that is not there is an answer, not a failure", () => {
  const text =
    "Result=success\nNRestarts=0\nMainPID=0\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n";
  expect(parseUnitStatus(text)).toEqual({
    loadState: "not-found",
    activeState: "inactive",
    subState: "dead",
    unitFileState: "",
    restarts: 0,
    result: "success",
    mainPid: 0,
  });
});

test("enable keeps the links that systemctl made, and a failed one keeps nothing", async () => {
  const fake = fakeHost({
    programs: {
      systemctl: (request, machine) => {
        if (request.argv.includes("bad.timer")) return { exitCode: 1, stderr: "Unit bad.timer does not exist.\n" };
        machine.put("/etc/systemd/system/timers.target.wants/a.timer", "");
        return "";
      },
    },
  });
  const systemd = realSystemd(fake.exec, fake.files);
  expect((await systemd.enable("a.timer")).ok).toBe(true);
  expect(fake.text("/var/lib/corium/etc/systemd/system/timers.target.wants/a.timer")).toBe("");
  const refused = await systemd.enable("bad.timer");
  expect(!refused.ok && refused.error.code).toBe("unit-not-found");
  expect(fake.calls.filter((call) => call.startsWith("files.keep"))).toHaveLength(1);
});

test("without systemctl the error says so", async () => {
  const fake = fakeHost();
  const result = await realSystemd(fake.exec, fake.files).restart("x.service");
  expect(!result.ok && result.error.code).toBe("systemd-missing");
});
