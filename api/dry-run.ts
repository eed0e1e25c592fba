import { err, ok, type Result } from "../kit/result.ts";
import { problem } from "./problem.ts";

/** Whether only a plan is asked for: `?dryRun` alone says so, too. Anything but yes or no is refused, not guessed. */
export function readDryRun(query: URLSearchParams): Result<boolean, Response> {
  const given = query.getAll("dryRun");
  const other = [...query.keys()].find(
    (key) => key !== "dryRun" && key.replaceAll(/[-_]/g, "").toLowerCase() === "dryrun",
  );
  if (other !== undefined || given.length > 1) {
    const error = other === undefined ? "dryRun is given more than once" : `${other} is not known, only dryRun is`;
    return err(problem(400, `${error}; nothing was done`, { reason: "invalid-query" }));
  }
  const [text = null] = given;
  if (text === null || text === "false") return ok(false);
  if (text === "true" || text === "") return ok(true);
  const shown = JSON.stringify(text.slice(0, 40));
  return err(
    problem(400, `dryRun is ${shown}, and takes true or false; nothing was done`, { reason: "invalid-query" }),
  );
}
