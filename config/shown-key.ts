/** Which keys of a document a finding may name: a secret that lost its field or its colon stands where a key does. */
import { looksLikeKey } from "./messages/codes.ts";
import { isMisspelling } from "./names.ts";
import { isSecretPath, type Path } from "./path.ts";
import { documentSchema } from "./schema/root.ts";
import { schemaFields, shapeOf, type Shape } from "./schema/walk.ts";

/** What stands for a key that is not shown. Position and hint lead to it all the same. */
const HIDDEN = "…";

/** Shorter ones are no secret that could be kept. */
const LEAST_SECRET = 6;

const FIELD_NAMES = new Set(["<<", ...schemaFields(documentSchema).map(({ pattern }) => pattern.split(".").at(-1))]);

/**
 * Whether a key that a map does not have may be shown: the name of a field, misspelt or in the wrong place; or a plain
 * word, where no secret belongs. `undefined`: no map belongs here at all.
 */
export function isShownKey(key: string, known: readonly string[] | undefined): boolean {
  if (key.length < LEAST_SECRET || FIELD_NAMES.has(key)) return true;
  if (known === undefined) return false;
  if (isMisspelling(key, known)) return true;
  const isBesideSecret = known.some((name) => isSecretPath([name]) || name === "authFile");
  return !isBesideSecret && key.length <= 20 && /^_*[A-Za-z]+(?:[-_.][A-Za-z]+)*_*$/.test(key);
}

/** The path as findings have it. In free maps, labels and the like every key is shown. */
export function shownPath(path: Path): Path {
  let next: Shape | undefined = shapeOf(documentSchema);
  return path.map((part) => {
    const shape = next;
    next = shape === undefined || shape.kind === "anything" ? shape : enter(shape, part);
    if (typeof part === "number") return part;
    if (shape?.kind === "record" || shape?.kind === "anything") return looksLikeKey(part) ? HIDDEN : part;
    const known = shape === undefined ? undefined : fieldsOf(shape);
    return known?.includes(part) === true || isShownKey(part, known) ? part : HIDDEN;
  });
}

/** What the schema has below; the branch of a choice is the one that such a key or index fits. */
function enter(shape: Shape, part: string | number): Shape | undefined {
  if (shape.kind === "choice") {
    const fitting = shape.options.map(shapeOf).find(({ kind }) => kind === (typeof part === "number" ? "list" : "map"));
    return fitting === undefined ? undefined : enter(fitting, part);
  }
  if (shape.kind === "list") return typeof part === "number" ? shapeOf(shape.item) : undefined;
  if (shape.kind === "record") return shapeOf(shape.value);
  const field = shape.kind === "map" && Object.hasOwn(shape.fields, part) ? shape.fields[part] : undefined;
  return field === undefined ? undefined : shapeOf(field);
}

function fieldsOf(shape: Shape): readonly string[] | undefined {
  if (shape.kind === "map") return Object.keys(shape.fields);
  const map = shape.kind === "choice" ? shape.options.map(shapeOf).find(({ kind }) => kind === "map") : undefined;
  return map === undefined ? undefined : fieldsOf(map);
}
