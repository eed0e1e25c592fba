import { expect, test } from "bun:test";

import { hardwareReader } from "./hardware.ts";

test("processor and memory are told, and unknown things are left out", async () => {
  let atMs = 0;
  const read = hardwareReader({ monotonicMs: () => atMs });
  // Not while the machine boots.
  expect(await read()).toBeUndefined();
  atMs = 60_000;
  const hardware = await read();
  if (hardware === undefined) throw new Error("nothing was read");
  expect(hardware.cores).toBeGreaterThan(0);
  expect(hardware.memoryBytes).toBeGreaterThan(2 ** 27);
  for (const value of Object.values(hardware)) expect(String(value)).not.toMatch(/^(|-|undefined)$/);
  expect(await read()).toBe(hardware);
});
