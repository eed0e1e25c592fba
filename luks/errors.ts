import type { AppError } from "../kit/app-error.ts";
import { appError } from "../kit/app-error.ts";
import type { ExecResult } from "../kit/ports.ts";

/** cryptsetup(8), "RETURN CODES": 1 wrong parameters, 2 no permission (bad passphrase), 4 wrong device, 5 exists or busy. */
export const WRONG_KEY = 2;

export function toolFailed(message: string, ran: ExecResult, hint?: string): AppError {
  const program = ran.argv[0] ?? "";
  const how =
    ran.failure !== undefined
      ? `${program} is ${ran.failure}`
      : ran.timedOut
        ? `${program} did not end in time`
        : ran.signal !== null
          ? `${program} was killed by ${ran.signal}`
          : `${program} exited with ${ran.exitCode ?? "unknown"}`;
  const details = ran.stderr.split("\n").filter((line) => line.trim() !== "");
  return appError(program, `${message}: ${how}`, {
    details: details.slice(-5),
    ...(hint === undefined ? {} : { hint }),
  });
}
