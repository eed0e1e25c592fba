/** A document that names another operator CA. Pure. */
import { isMap, isScalar, parseDocument, Scalar } from "yaml";
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";

const notEditable = (): Result<never, AppError> =>
  fail(
    "not-editable",
    "in the node's own document api.operatorCA can't be replaced: its api block is not a plain map, or holds a value that is used elsewhere",
    {
      hint: "apply a document with the new api.operatorCA, with --confirm-within",
    },
  );

/** `text` has been validated; its comments and all that is not about the CA stay as they are. */
export function withOperatorCa(text: string, pem: string): Result<string, AppError> {
  const document = parseDocument(text, { version: "1.2", uniqueKeys: false, intAsBigInt: true });
  // In a cloud-config ours is below one key of it.
  const root = document.has("corium") ? document.get("corium", true) : document.contents;
  const given = isMap(root) ? root.get("api", true) : undefined;
  // `api:` with nothing behind it.
  const api = isScalar(given) && given.value === null ? undefined : given;
  if (document.errors.length > 0 || !isMap(root) || (api !== undefined && !isMap(api))) {
    return notEditable();
  }
  const literal = new Scalar(pem);
  literal.type = Scalar.BLOCK_LITERAL;
  if (api === undefined) root.set("api", document.createNode({ enabled: true }));
  const block = root.get("api", true);
  if (!isMap(block)) return notEditable();
  for (const key of ["operatorCAFrom", "insecure"]) block.delete(key);
  block.set("operatorCA", literal);
  try {
    return ok(document.toString({ lineWidth: 0 }));
  } catch {
    // What was taken out had a name (&x) that is used elsewhere.
    return notEditable();
  }
}
