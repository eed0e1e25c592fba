/** A document with other blocks: what is given to every controller of a cluster, each of which has its own document. Pure. */
import { type Document as YamlDocument, isAlias, isMap, isScalar, parseDocument, visit, type YAMLMap } from "yaml";
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";

/** The same on every controller; one that is not given goes from the document. */
const CONTENT = ["addons", "manifests", "k0s"] as const;
/** Of each node; one that is not given stays. */
const OWN = ["upgrades", "backup"] as const;
const ALL: readonly string[] = [...CONTENT, ...OWN];

/** A document that would grow beyond all bounds was refused when it was read. */
const MOST_ALIASES = 10_000;

interface Opened {
  readonly document: YamlDocument;
  /** Absent in an empty document. */
  readonly root?: YAMLMap;
}

/** In a cloud-config ours is below one key of it. */
function open(text: string): Opened | undefined {
  // Whole numbers of any size come out as they went in.
  const document = parseDocument(text, { version: "1.2", uniqueKeys: false, intAsBigInt: true });
  if (document.errors.length > 0) return undefined;
  if (document.contents === null) return { document };
  const root = document.has("corium") ? document.get("corium", true) : document.contents;
  return isMap(root) ? { document, root } : undefined;
}

/** Named values and where they are used lie in different blocks sometimes: then each is written out. */
function withoutAliases({ document, root }: Opened): Opened {
  let hasAlias = false;
  visit(document, (_, node) => {
    hasAlias ||= isAlias(node);
    return hasAlias ? visit.BREAK : undefined;
  });
  if (!hasAlias || root === undefined) return root === undefined ? { document } : { document, root };
  const plain: unknown = root.toJS(document, { maxAliasCount: MOST_ALIASES });
  const made = document.createNode(plain, { aliasDuplicateObjects: false });
  return isMap(made) ? { document, root: made } : { document };
}

const keyOf = (key: unknown): unknown => (isScalar(key) ? key.value : key);

/** What says that there are none: an empty text is no document. */
const NONE = "addons: []\n";

/** The blocks of a document that has been validated, as YAML, with their comments. */
export function blocksOf(text: string): Result<string, AppError> {
  const opened = open(text);
  if (opened === undefined) return fail("not-editable", "the blocks of this document can't be taken out of it");
  const { root } = withoutAliases(opened);
  const taken = parseDocument("{}", { version: "1.2" });
  const map = taken.createNode({}) as YAMLMap;
  map.items = (root?.items ?? []).filter(({ key }) => ALL.includes(String(keyOf(key))));
  if (map.items.length === 0) return ok(NONE);
  taken.contents = map as typeof taken.contents;
  return ok(taken.toString({ lineWidth: 0 }));
}

/** `own` has been validated, and so have `blocks`; comments and all other blocks of `own` stay as they are. */
export function withBlocks(own: string, blocks: string): Result<string, AppError> {
  const target = open(own);
  const opened = open(blocks);
  if (opened === undefined) return fail("blocks", "the blocks are no map of blocks");
  const source = withoutAliases(opened);
  if (target?.root === undefined) {
    return fail("not-editable", "the node's own document can't be given other blocks", {
      hint: "apply a whole document to this node",
    });
  }
  const { root } = target;
  const given = source.root?.items ?? [];
  const strange = given.map(({ key }) => String(keyOf(key))).filter((key) => !ALL.includes(key));
  if (strange.length > 0) {
    return fail("blocks", `${strange.join(", ")} can't be given to several nodes; only ${ALL.join(", ")} can`);
  }
  for (const key of ALL) {
    const pair = given.find((one) => keyOf(one.key) === key);
    const at = root.items.findIndex((one) => keyOf(one.key) === key);
    if (pair !== undefined && at !== -1) root.items[at] = pair;
    else if (pair !== undefined) root.items.push(pair);
    else if (at !== -1 && CONTENT.some((one) => one === key)) root.items.splice(at, 1);
  }
  try {
    return ok(target.document.toString({ lineWidth: 0 }));
  } catch {
    return fail("not-editable", "other blocks of the node's own document use a value that is named in one of these", {
      hint: "apply a whole document to this node first, without such a reference",
    });
  }
}
