/** The units of a fake machine. */
import type { AppError } from "../../kit/app-error.ts";
import { appError } from "../../kit/app-error.ts";
import type { Systemd, UnitStatus } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import type { Call } from "./fake-call.ts";
import type { FakeHost, FakeUnit } from "./fake-host-model.ts";

export interface FakeSystemdOptions {
  readonly call: Call;
  readonly hasFile: (path: string) => boolean;
  readonly host: () => FakeHost;
  /** What a unit does whose file was found. */
  readonly newUnits?: (name: string) => Partial<FakeUnit>;
}

export interface FakeSystemd {
  readonly systemd: Systemd;
  readonly unitTable: Map<string, FakeUnit>;
  /** Everything is stopped, then what is enabled starts. */
  boot(): void;
}

export function fakeSystemd(
  units: Readonly<Record<string, Partial<FakeUnit>>>,
  { call, hasFile, host, newUnits }: FakeSystemdOptions,
): FakeSystemd {
  const unitTable = new Map<string, FakeUnit>();
  let lastPid = 1000;
  for (const [name, unit] of Object.entries(units)) unitTable.set(name, newUnit(unit));
  const called = <T>(name: string, work: () => Result<T, AppError>): Promise<Result<T, AppError>> =>
    call(name, work, () => err(appError("systemd", `${name.replace("systemd.", "systemctl ")} failed`)));

  const unitOf = (name: string): FakeUnit | undefined => {
    const known = unitTable.get(name);
    if (known !== undefined) return known;
    // A unit file that somebody wrote is a unit as soon as systemd is asked about it.
    if (!hasFile(`/etc/systemd/system/${name}`) && !hasFile(`/usr/lib/systemd/system/${name}`)) return undefined;
    const made = newUnit(newUnits?.(name) ?? {});
    unitTable.set(name, made);
    return made;
  };
  const onUnit = (name: string, change: (unit: FakeUnit) => Result<void, AppError>): Result<void, AppError> => {
    const unit = unitOf(name);
    return unit === undefined ? err(appError("unit-not-found", `systemd knows no unit ${name}`)) : change(unit);
  };
  const startUnit = (unit: FakeUnit): Result<void, AppError> => {
    const fate = unit.onStart?.(host()) ?? ok(undefined);
    unit.activeState = fate.ok ? "active" : "failed";
    unit.subState = fate.ok ? "running" : "failed";
    unit.result = fate.ok ? "success" : "exit-code";
    unit.mainPid = fate.ok ? (lastPid += 1) : 0;
    return fate;
  };
  const systemd: Systemd = {
    daemonReload: () => called("systemd.daemonReload", () => ok(undefined)),
    start: (name) =>
      called(`systemd.start ${name}`, () =>
        onUnit(name, (unit) => (unit.activeState === "active" ? ok(undefined) : startUnit(unit))),
      ),
    stop: (name) =>
      called(`systemd.stop ${name}`, () =>
        onUnit(name, (unit) => {
          Object.assign(unit, { activeState: "inactive", subState: "dead", mainPid: 0 });
          unit.onStop?.(host());
          return ok(undefined);
        }),
      ),
    restart: (name) => called(`systemd.restart ${name}`, () => onUnit(name, startUnit)),
    enable: (name) =>
      called(`systemd.enable ${name}`, () =>
        onUnit(name, (unit) => {
          unit.isEnabled = true;
          return ok(undefined);
        }),
      ),
    disable: (name) =>
      called(`systemd.disable ${name}`, () =>
        onUnit(name, (unit) => {
          unit.isEnabled = false;
          return ok(undefined);
        }),
      ),
    resetFailed: (name) =>
      called(`systemd.resetFailed ${name}`, () =>
        onUnit(name, (unit) => {
          if (unit.activeState === "failed") Object.assign(unit, { activeState: "inactive", subState: "dead" });
          return ok(undefined);
        }),
      ),
    status: (name) =>
      called(`systemd.status ${name}`, () => {
        const unit = unitOf(name);
        const status: UnitStatus = {
          loadState: unit?.loadState ?? "not-found",
          activeState: unit?.activeState ?? "inactive",
          subState: unit?.subState ?? "dead",
          unitFileState: unit === undefined ? "" : unit.isEnabled ? "enabled" : "disabled",
          restarts: unit?.restarts ?? 0,
          result: unit?.result ?? "success",
          mainPid: unit?.mainPid ?? 0,
        };
        return ok(status);
      }),
    journalTail: (name, lines) =>
      called(`systemd.journalTail ${name}`, () => ok((unitOf(name)?.journal ?? []).slice(-lines))),
  };

  return {
    systemd,
    unitTable,
    boot: () => {
      for (const unit of unitTable.values()) {
        Object.assign(unit, { activeState: "inactive", subState: "dead", mainPid: 0, restarts: 0 });
      }
      for (const unit of unitTable.values()) if (unit.isEnabled) startUnit(unit);
    },
  };
}

function newUnit(more: Partial<FakeUnit>): FakeUnit {
  return {
    activeState: "inactive",
    subState: "dead",
    loadState: "loaded",
    isEnabled: false,
    restarts: 0,
    result: "success",
    mainPid: 0,
    journal: [],
    ...more,
  };
}
