/** What a new CA's admin has to sign: the node's word, fresh, and good for one try. */
import type { Host } from "../kit/ports.ts";

const GOOD_FOR_MS = 10 * 60_000;
const BYTES = 32;

export interface CaChallenge {
  /** Another one; the one before is worth nothing any more. */
  give(): string;
  /** The one that was given last, once; undefined when it is used up or too old. */
  take(): string | undefined;
}

export function caChallenge({ clock, random }: Pick<Host, "clock" | "random">): CaChallenge {
  let given: { readonly nonce: string; readonly untilMs: number } | undefined;
  return {
    give() {
      const nonce = Buffer.from(random.bytes(BYTES)).toString("base64url");
      given = { nonce, untilMs: clock.monotonicMs() + GOOD_FOR_MS };
      return nonce;
    },
    take() {
      const last = given;
      given = undefined;
      return last !== undefined && clock.monotonicMs() < last.untilMs ? last.nonce : undefined;
    },
  };
}
