/** Units and generators of the image that no other test reads: what starts when, and on which screens. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EXIT_DISABLED, WATCHDOG_MS } from "../api/serve.main.ts";
import { nodePaths } from "../kit/paths.ts";
import { installedGrubConfig, mediumGrubConfig } from "./grub.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const lib = join(import.meta.dir, "rootfs/usr/lib/systemd");
const unit = (name: string): string => readFileSync(join(lib, "system", name), "utf8");
const valuesOf = (text: string, key: string): readonly string[] =>
  [...text.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].flatMap(([, value]) => (value ?? "").split(" "));

/** The generator as it is but for the file that it reads. */
function consolesOf(cmdline: string, target = "multi-user"): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "consoles-"));
  try {
    const given = join(folder, "cmdline");
    writeFileSync(given, `${cmdline}\n`);
    const script = readFileSync(join(lib, "system-generators/corium-console-generator"), "utf8");
    expect(script).toContain("/proc/cmdline");
    writeFileSync(join(folder, "generator"), script.replaceAll("/proc/cmdline", given));
    const ran = Bun.spawnSync(["sh", join(folder, "generator"), join(folder, "out")]);
    expect(ran.stderr.toString()).toBe("");
    const wants = join(folder, `out/${target}.target.wants`);
    return existsSync(wants)
      ? readdirSync(wants)
          .map((name) => name.replace(/^.*@|\.service$/g, ""))
          .sort()
      : [];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("an array that a slow machine starts late is waited for longer than systemd would by itself", () => {
  const manager = readFileSync(join(lib, "system.conf.d/50-corium.conf"), "utf8");
  const arrays = readFileSync(
    join(import.meta.dir, "rootfs-storage/usr/lib/systemd/system/corium-arrays.service"),
    "utf8",
  );
  const [minutes] = /^DefaultDeviceTimeoutSec=(\d+)min$/m.exec(manager)?.slice(1) ?? [];
  const [seconds] = /^TimeoutStartSec=(\d+)$/m.exec(arrays)?.slice(1) ?? [];
  expect(Number(minutes) * 60).toBeGreaterThan(2 * Number(seconds));
});

describe("consoles", () => {
  test("B117: the screen is on every port that the command line names, not on ttyS0 for ever", () => {
    expect(consolesOf("quiet console=tty0 console=ttyS1,115200n8")).toEqual(["tty1", "ttyS1"]);
    expect(consolesOf("console=ttyAMA0 console=hvc0 console=ttyS3,9600")).toEqual(["hvc0", "tty1", "ttyAMA0", "ttyS3"]);
    expect(consolesOf("quiet")).toEqual(["tty1", "ttyS0"]);
    expect(consolesOf("console=../../x console=null console= console=ttyS0;reboot")).toEqual(["tty1", "ttyS0"]);
  });

  test("the rescue menu is on the same terminals, and ends the console of its own", () => {
    for (const cmdline of ["quiet console=tty0 console=ttyS1,115200n8", "quiet"]) {
      for (const target of ["corium-rescue", "emergency"])
        expect(consolesOf(cmdline, target)).toEqual(consolesOf(cmdline));
    }
    const menu = unit("corium-rescue@.service");
    expect(valuesOf(menu, "Conflicts")).toContain("corium-console@%i.service");
    expect(valuesOf(menu, "After")).toContain("corium-console@%i.service");
    expect(unit("emergency.target")).not.toMatch(/^(?:Requires|Wants)=/m);
    const target = unit("corium-rescue.target");
    expect(target).not.toMatch(/^(?:Requires|Requisite|BindsTo|Condition|Assert)/m);
    expect(valuesOf(target, "Wants").filter((name) => /apid|bootstrap|k0s|multi-user/.test(name))).toEqual([]);
  });

  test("B116: the default names its speed, and a console of one's own replaces it instead of standing beside it", () => {
    const image = { version: "1.2.3", rootHash: "ab".repeat(32), hashOffsetBytes: 163_840 };
    for (const text of [installedGrubConfig(), mediumGrubConfig(image)]) {
      expect(text.match(/console=ttyS\d\S*/g)?.every((argument) => /,115200\b/.test(argument))).toBe(true);
      expect(text).toMatch(/if regexp 'console=' "\$args"; then set consoles=""; fi/);
      const kernels = text.match(/^\s*(?:if )?linux .*$/gm) ?? [];
      expect(kernels.length).toBeGreaterThan(0);
      for (const line of kernels) expect(line).toMatch(/\$consoles .*\$args/);
    }
  });
});

describe("a reset", () => {
  const { resetIntent, resetErasing } = nodePaths();

  test("its unit runs for as long as the intent is there, at every boot, and is started again when it was killed", () => {
    const reset = unit("corium-reset.service");
    expect(valuesOf(reset, "ConditionPathExists")).toEqual([resetIntent]);
    expect(valuesOf(reset, "WantedBy")).toEqual(["multi-user.target"]);
    expect(valuesOf(reset, "Restart")).toEqual(["on-abnormal"]);
    expect(readFileSync(join(lib, "system-preset/00-corium.preset"), "utf8")).toContain("enable corium-reset.service");
  });

  test("in its middle no bootstrap begins, and from the point of no return k0s does not start", () => {
    expect(valuesOf(unit("corium-bootstrap.service"), "ConditionPathExists")).toContain(`!${resetIntent}`);
    for (const name of ["k0scontroller", "k0sworker"])
      expect(valuesOf(unit(`${name}.service.d/50-corium.conf`), "ConditionPathExists")).toContain(`!${resetErasing}`);
  });
});

describe("the API", () => {
  const apid = unit("corium-apid.service");

  test("B083: it starts on every boot, whatever became of the configuration and its sources", () => {
    expect(apid).not.toMatch(/^(?:Condition|Assert|Requires|Requisite|BindsTo)/m);
    expect(valuesOf(apid, "After").filter((name) => /network|cloud|bootstrap|mount/.test(name))).toEqual([]);
    expect(valuesOf(apid, "WantedBy")).toEqual(["multi-user.target"]);
    expect(readFileSync(join(lib, "system-preset/00-corium.preset"), "utf8")).toContain("enable corium-apid.service");
  });

  test("B157: one that hangs is noticed by systemd and started again", () => {
    expect(valuesOf(apid, "Type")).toEqual(["notify"]);
    expect(Number(valuesOf(apid, "WatchdogSec")[0])).toBeGreaterThan(0);
    expect(valuesOf(apid, "Restart")).toEqual(["always"]);
  });

  test("one that feeds its watchdog is not killed by it when a few meals come late", () => {
    expect(Number(valuesOf(apid, "WatchdogSec")[0]) * 1000).toBeGreaterThanOrEqual(10 * WATCHDOG_MS);
  });

  test("one that its document turns off stays off, and is no failed unit", () => {
    expect(valuesOf(apid, "RestartPreventExitStatus")).toEqual([String(EXIT_DISABLED)]);
    expect(valuesOf(apid, "SuccessExitStatus")).toEqual([String(EXIT_DISABLED)]);
  });
});
