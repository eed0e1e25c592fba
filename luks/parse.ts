import { z } from "zod";
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { Header, KeySlot, SlotKind } from "./model.ts";

const dump = z.looseObject({
  keyslots: z.record(z.string(), z.unknown()),
  tokens: z
    .record(
      z.string(),
      z.looseObject({
        type: z.string(),
        keyslots: z.array(z.string()).default([]),
        "tpm2-pcrs": z.array(z.number()).optional(),
      }),
    )
    .default({}),
});

const kinds: Readonly<Record<string, SlotKind>> = { "systemd-tpm2": "tpm2", "systemd-recovery": "recovery" };

/** `cryptsetup luksDump --dump-json-metadata`. A slot is of the kind of the token that names it. */
export function parseHeader(stdout: string): Result<Header, AppError> {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return fail("not-json", "cryptsetup luksDump printed no JSON");
  }
  const parsed = dump.safeParse(json);
  if (!parsed.success) {
    const where = parsed.error.issues[0]?.path.join(".") ?? "";
    return fail("not-understood", `cryptsetup luksDump printed what was not expected: ${where}`);
  }
  const tokens = Object.values(parsed.data.tokens);
  const slots = Object.keys(parsed.data.keyslots).map((key): KeySlot => {
    const token = tokens.find(({ keyslots }) => keyslots.includes(key));
    return { number: Number(key), kind: token === undefined ? "password" : (kinds[token.type] ?? "other") };
  });
  return ok({
    slots: slots.toSorted((a, b) => a.number - b.number),
    tpm2Pcrs: tokens.flatMap((token) => (token.type === "systemd-tpm2" ? [token["tpm2-pcrs"] ?? []] : [])),
  });
}

export const hasSlot = (header: Header, kind: SlotKind): boolean => header.slots.some((slot) => slot.kind === kind);

/** Bound to PCR 7 and to nothing else. */
export const isBoundToTpm = (header: Header): boolean =>
  hasSlot(header, "tpm2") && header.tpm2Pcrs.every((pcrs) => pcrs.length === 1 && pcrs[0] === 7);

/** `dmsetup info -c -o name,uuid`: UUID by name. */
export const parseMappings = (stdout: string): ReadonlyMap<string, string> =>
  new Map(
    stdout.split("\n").flatMap((line) => {
      const [name, uuid] = line.trim().split(" ");
      return name === undefined || name === "" || uuid === undefined ? [] : [[name, uuid] as const];
    }),
  );
