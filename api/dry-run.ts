import { err, ok, type Result } from "../kit/result.ts";
import { problem } from "./problem.ts";

/** Whether only a plan is asked for: `?dryRun` alone says so, too. Anything but yes or no is refused, not guessed. */
export function readDryRun(query: URLSearchParams): Result<boolean, Response> {
  const text = query.get("dryRun");
  if (text === null || text === "false") return ok(false);
  if (text === "true" || text === "") return ok(true);
  const shown = JSON.stringify(text.slice(0, 40));
  return err(
    problem(400, `dryRun is ${shown}, and takes true or false; nothing was done`, { reason: "invalid-query" }),
  );
}
