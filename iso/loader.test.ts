import { expect, test } from "bun:test";
import { bootSectors } from "./loader.ts";

const MIB = 1024 * 1024;

test("boot.img and core.img are told the sectors of the BIOS boot partition", () => {
  const made = bootSectors(new Uint8Array(512).fill(7), new Uint8Array(200_000).fill(9), MIB, MIB);
  if (!made.ok) throw new Error(made.error.message);
  const boot = new DataView(made.value.bootCode.buffer);
  expect(made.value.bootCode.length).toBe(440);
  expect(boot.getBigUint64(0x5c, true)).toBe(2048n);
  expect(boot.getUint16(0x66, true)).toBe(0x9090);
  expect(new DataView(made.value.core.buffer).getBigUint64(500, true)).toBe(2049n);
  expect(made.value.core.length).toBe(200_000);
});

test("a core image that does not fit is refused before anything is written", () => {
  expect(bootSectors(new Uint8Array(512), new Uint8Array(MIB + 1), MIB, MIB)).toMatchObject({ ok: false });
  expect(bootSectors(new Uint8Array(511), new Uint8Array(9), MIB, MIB)).toMatchObject({ ok: false });
});
