import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import {
  BOOT_ENV_BYTES,
  FIRST_GENERATION,
  decodeBootEnv,
  encodeBootEnv,
  encodeSlotEnv,
  newBootEnv,
} from "./bootenv.ts";
import type { BootEnv, Slot, SlotState } from "./bootenv.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const ID = "0123456789abcdef0123456789abcdef";

const slots = fc.constantFrom<Slot>("A", "B");
const states = fc.constantFrom<SlotState>("good", "fail", "void");
const environments: fc.Arbitrary<BootEnv> = fc
  .record(
    {
      generation: fc.integer({ min: FIRST_GENERATION, max: 999_999_999 }),
      good: slots,
      try: slots,
      tried: slots,
      a: states,
      b: states,
    },
    { requiredKeys: ["generation", "good", "a", "b"] },
  )
  .map(({ a, b, ...rest }) => ({ id: ID, ...rest, state: { A: a, B: b } }));

describe("boot environment", () => {
  test("what is written is read back", () => {
    fc.assert(
      fc.property(environments, (env) => {
        const bytes = encodeBootEnv(env);
        expect(bytes.length).toBe(BOOT_ENV_BYTES);
        expect(decodeBootEnv(bytes)).toEqual({ ok: true, value: env });
      }),
    );
  });

  test("a write torn between its sectors leaves the old or the new environment, never a mixture", () => {
    fc.assert(
      fc.property(environments, environments, fc.boolean(), (before, after, firstSectorWritten) => {
        const [old, young] = [encodeBootEnv(before), encodeBootEnv(after)];
        const torn = new Uint8Array(BOOT_ENV_BYTES);
        torn.set((firstSectorWritten ? young : old).subarray(0, 512), 0);
        torn.set((firstSectorWritten ? old : young).subarray(512), 512);
        expect(decodeBootEnv(torn)).toEqual({ ok: true, value: firstSectorWritten ? after : before });
      }),
    );
  });

  test("every byte of the second sector is the same in every environment", () => {
    fc.assert(
      fc.property(environments, (env) => {
        expect(new TextDecoder().decode(encodeBootEnv(env).subarray(512))).toBe("#".repeat(512));
      }),
    );
  });

  test("no damaged environment crashes the reader or invents a slot", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 0, maxLength: 1100 }), (bytes) => {
        expect(decodeBootEnv(bytes).ok).toBe(false);
      }),
    );
    const bytes = encodeBootEnv(newBootEnv(ID));
    expect(decodeBootEnv(bytes.subarray(0, 512)).ok).toBe(false);
    expect(
      decodeBootEnv(new TextEncoder().encode(new TextDecoder().decode(bytes).replace("good=A", "good=C"))).ok,
    ).toBe(false);
  });

  const editenv = Bun.which("grub-editenv");
  test.skipIf(editenv === null)(
    "GRUB's own tool reads it and keeps its layout when it writes [needs grub-editenv]",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "bootenv-"));
      try {
        const file = join(folder, "env");
        writeFileSync(file, encodeBootEnv({ ...newBootEnv(ID), try: "B" }));
        const list = Bun.spawnSync([editenv ?? "", file, "list"]).stdout.toString();
        expect(list).toContain("gen=100000001\n");
        expect(list).toContain("try=B\n");
        Bun.spawnSync([editenv ?? "", file, "set", "try=-", "tried=B"]);
        expect(decodeBootEnv(readFileSync(file))).toEqual({ ok: true, value: { ...newBootEnv(ID), tried: "B" } });
        writeFileSync(file, encodeSlotEnv({ version: "1", rootHash: "ab", hashOffsetBytes: 4096, args: "a=b c\\d" }));
        expect(Bun.spawnSync([editenv ?? "", file, "list"]).stdout.toString()).toBe(
          "version=1\nroothash=ab\nhashoffset=4096\nargs=a=b c\\d\n",
        );
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
