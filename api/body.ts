import type { ZodType } from "zod";

import type { Finding } from "../kit/finding.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import type { Wire } from "./http-server.ts";
import { problem } from "./problem.ts";

/** Reads and checks a JSON body; the error is the answer. */
export async function readJsonBody(
  request: Request,
  wire: Wire,
  limitBytes: number,
): Promise<Result<unknown, Response>> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    return err(problem(415, "send the body as application/json", { reason: "content-type" }));
  }
  const text = await wire.readBody(limitBytes);
  if (!text.ok) {
    switch (text.error) {
      case "too-large":
        return err(problem(413, `the body is larger than the ${limitBytes} bytes that this route takes`));
      case "timeout":
        return err(problem(408, "the body did not arrive in time; send it again"));
      case "broken":
        return err(problem(400, "the body broke off"));
    }
  }
  try {
    return ok(JSON.parse(text.value));
  } catch {
    return err(problem(400, "the body is not JSON", { reason: "not-json" }));
  }
}

export function checkBody(schema: ZodType, value: unknown): Result<unknown, Response> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  const problems = parsed.error.issues.map((issue): Finding => ({
    severity: "error",
    code: issue.code,
    path: issue.path.map(String).join("."),
    // zod's sentences start upper case and never repeat the value.
    message: issue.message.charAt(0).toLowerCase() + issue.message.slice(1),
  }));
  return err(problem(400, "the body is not what this route takes; see problems", { reason: "invalid-body", problems }));
}
