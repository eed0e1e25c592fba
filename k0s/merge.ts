export type Plain = Record<string, unknown>;

export const isMap = (value: unknown): value is Plain =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** `k0s.patch`: maps merge by key, everything else (lists, scalars, null) replaces what was there. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isMap(target) || !isMap(patch)) return patch;
  const merged = new Map(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    merged.set(key, merged.has(key) ? mergePatch(merged.get(key), value) : value);
  }
  // fromEntries defines own properties, so that a key `__proto__` is only a key.
  return Object.fromEntries(merged);
}

/** The value at a path of keys, or undefined. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const key of path) {
    if (!isMap(at) || !Object.hasOwn(at, key)) return undefined;
    at = at[key];
  }
  return at;
}
