/** What a unit promises and what the program in it does must agree. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EXIT_DISABLED, WATCHDOG_MS } from "../api/serve.main.ts";

const unit = readFileSync(join(import.meta.dir, "rootfs/usr/lib/systemd/system/corium-apid.service"), "utf8");
const valueOf = (key: string): string | undefined => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];

test("a daemon that feeds its watchdog is not killed by it when a few meals come late", () => {
  expect(Number(valueOf("WatchdogSec")) * 1000).toBeGreaterThanOrEqual(10 * WATCHDOG_MS);
});

test("an API that its document turns off stays off, and is no failed unit", () => {
  expect(valueOf("RestartPreventExitStatus")).toBe(String(EXIT_DISABLED));
  expect(valueOf("SuccessExitStatus")).toBe(String(EXIT_DISABLED));
});
