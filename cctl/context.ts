/** What every command of cctl works with, and what a command is. */
import type { AppError } from "../kit/app-error.ts";
import type { CommandIo } from "../kit/command.ts";
import type { Clock, Files, Random } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Arguments, FlagSpec } from "./arguments.ts";
import type { Paint } from "./printable.ts";
import type { Store } from "./store.ts";

export type Output = "text" | "json" | "yaml";

export interface Context {
  readonly io: CommandIo;
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  readonly output: Output;
  /** `--yes`: questions are answered beforehand. */
  readonly isAgreed: boolean;
  readonly paint: Paint;
}

/** What a script branches on: docs/cctl.md. */
export const exitStatus = { done: 0, failed: 1, usage: 2, unreachable: 3, notAuthorised: 4, notWished: 5 } as const;

export interface CctlCommand {
  /** `["pki", "init"]` */
  readonly words: readonly string[];
  /** As in the help: `ADDR [ID]`. The brackets say what may be left out. */
  readonly operands: string;
  readonly summary: string;
  readonly flags: readonly FlagSpec[];
  readonly run: (context: Context, given: Arguments) => Promise<Result<number, AppError>>;
}

export const globalFlags: readonly FlagSpec[] = [
  { name: "dir", value: "FOLDER", help: "the store; default $CORIUM_DIR, else ~/.corium" },
  { name: "output", short: "o", value: "text|json|yaml", help: "json is the node's answer verbatim" },
  { name: "yes", short: "y", help: "don't ask" },
  { name: "help", short: "h", help: "this text" },
];

/** How many operands a command takes. */
export function operandRange(operands: string): { readonly min: number; readonly max: number } {
  const all = operands.split(" ").filter((word) => word !== "");
  const min = all.filter((word) => !word.startsWith("[")).length;
  return { min, max: all.some((word) => word.endsWith("…")) ? Number.POSITIVE_INFINITY : all.length };
}

export function statusOf(error: AppError): number {
  switch (error.code) {
    case "usage":
      return exitStatus.usage;
    case "unreachable":
      return exitStatus.unreachable;
    case "not-authorised":
      return exitStatus.notAuthorised;
    default:
      return exitStatus.failed;
  }
}
