import { expect, test } from "bun:test";

import { hardwareReader } from "./hardware.ts";

test("processor and memory are told, and unknown things are left out", async () => {
  const read = hardwareReader();
  const hardware = await read();
  expect(hardware.cores).toBeGreaterThan(0);
  expect(hardware.memoryBytes).toBeGreaterThan(2 ** 27);
  for (const value of Object.values(hardware)) expect(String(value)).not.toMatch(/^(|-|undefined)$/);
  expect(await read()).toBe(hardware);
});
