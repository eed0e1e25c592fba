/**
 * The claim code of this boot and the throttle on guessing it. Both live in `/run/corium/enrolment.json` (tmpfs, 0600),
 * so that a restart of the daemon neither mints a second code while the first is on the screen nor forgives wrong ones.
 */
import { createHash, timingSafeEqual } from "node:crypto";

import { z } from "zod";

import type { AppError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";

/** Wrong codes before it gets slow. */
export const FREE_TRIES = 5;
/** One try in this time for all comers together, for ever: junk must not force a truck roll. */
export const SLOW_TRY_MS = 10_000;

const SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_LENGTH = 8;

export type Attempt = { readonly kind: "right" | "wrong" } | { readonly kind: "throttled"; readonly waitMs: number };

export interface Enrolment {
  /** Counted, and on disk, before the answer is known to anybody. */
  attempt(code: string): Promise<Attempt>;
  /** Consoles then say loudly that no code is asked for. */
  setInsecure(isInsecure: boolean): Promise<Result<void, AppError>>;
  isInsecure(): boolean;
  /** Claimed: the code leaves the consoles. */
  close(): Promise<Result<void, AppError>>;
}

/** What consoles read of it is `code` (absent: none is asked for) and `fingerprint`. */
const schema = z.object({
  code: z.string().optional(),
  hiddenCode: z.string().optional(),
  fingerprint: z.string(),
  wrongTries: z.int(),
  lastTryMs: z.number().optional(),
});
type Stored = z.infer<typeof schema>;

export async function openEnrolment(
  host: Host,
  path: string,
  fingerprint: string,
): Promise<Result<Enrolment, AppError>> {
  const old = await host.files.readText(path, { maxBytes: 4096 });
  const kept = old.ok ? parseStored(old.value) : undefined;
  const code = kept?.code ?? kept?.hiddenCode ?? mintCode(host.random.bytes(CODE_LENGTH));
  let isInsecure = false;
  let wrongTries = kept?.wrongTries ?? 0;
  let lastTryMs = kept?.lastTryMs;
  let writing: Promise<Result<void, AppError>> = Promise.resolve(ok(undefined));
  let isClosed = false;

  const save = (): Promise<Result<void, AppError>> => {
    const stored: Stored = {
      ...(isInsecure ? { hiddenCode: code } : { code }),
      fingerprint,
      wrongTries,
      ...(lastTryMs === undefined ? {} : { lastTryMs }),
    };
    // One after the other, so that an older state never overwrites a newer one.
    writing = writing.then(() =>
      isClosed ? ok(undefined) : host.files.write(path, `${JSON.stringify(stored)}\n`, { mode: 0o600 }),
    );
    return writing;
  };
  const first = await save();
  if (!first.ok) return first;

  return ok({
    async attempt(given) {
      const nowMs = host.clock.monotonicMs();
      const waitMs = lastTryMs === undefined ? 0 : lastTryMs + SLOW_TRY_MS - nowMs;
      if (wrongTries >= FREE_TRIES && waitMs > 0) return { kind: "throttled", waitMs };
      // Taken before the code is looked at, and without a pause in between: tries that arrive together count each.
      lastTryMs = nowMs;
      const isRight = sameCode(given, code);
      if (!isRight) wrongTries += 1;
      await save();
      return { kind: isRight ? "right" : "wrong" };
    },
    async setInsecure(next) {
      if (next === isInsecure) return ok(undefined);
      isInsecure = next;
      return save();
    },
    isInsecure: () => isInsecure,
    async close() {
      isClosed = true;
      await writing;
      return host.files.remove(path);
    },
  });
}

function parseStored(text: string): Stored | undefined {
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** `XXXX-XXXX`: 40 bits, without letters that look like digits. */
function mintCode(bytes: Uint8Array): string {
  const symbols = Array.from(bytes, (byte) => SYMBOLS[byte & 31]).join("");
  return `${symbols.slice(0, 4)}-${symbols.slice(4)}`;
}

/** Case, spaces and hyphens do not count; I and L are read as 1, O as 0, as Crockford has it. */
const normalCode = (code: string): string =>
  code.toUpperCase().replace(/[\s-]/g, "").replace(/[IL]/g, "1").replaceAll("O", "0");

/** Hashed first: equal lengths, and a time that says nothing of the place of the first difference. */
function sameCode(given: string, wanted: string): boolean {
  const digest = (code: string): Buffer => createHash("sha256").update(normalCode(code)).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
