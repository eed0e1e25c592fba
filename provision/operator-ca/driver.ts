/** The operator CA that a document names, inline or by its source. */
import type { Document } from "../../config/document.ts";
import { type AppError, fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import { err, ok, type Result } from "../../kit/result.ts";
import { resolveSecrets } from "../driver.ts";

/** PEM, not looked at; undefined when the document names none. */
export async function readOperatorCa(
  host: Host,
  api: NonNullable<Document["api"]>,
  signal?: AbortSignal,
): Promise<Result<string | undefined, AppError>> {
  if (api.operatorCA !== undefined) return ok(api.operatorCA);
  if (api.operatorCAFrom === undefined) return ok(undefined);
  const path = "api.operatorCAFrom";
  const resolved = await resolveSecrets(host, [{ path, source: api.operatorCAFrom }], {
    report: () => {},
    ...(signal === undefined ? {} : { signal }),
  });
  if (!resolved.ok) return err(resolved.error);
  const value = resolved.value.get(path);
  return value === undefined ? fail("secret", `no value for ${path}`) : ok(value.reveal());
}
