/** Where a value stands, from the schema's root; `wireguard[0].peers[1].endpoint` in print. */
export type Path = readonly (string | number)[];

/** Keys with a dot, a slash or anything else that would read as syntax are quoted: `node.labels["example.com/x"]`. */
export function formatPath(path: Path): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (!/^[^\s./[\]"]+$/.test(part)) text += `[${JSON.stringify(shorten(part))}]`;
    else text += text === "" ? shorten(part) : `.${shorten(part)}`;
  }
  return text;
}

/**
 * A key as it may be shown. With a blank in it, or so long that nobody wrote it on purpose, it may hold a secret that
 * lost its colon or its quotes (`{authPass hunter2}`).
 */
export function shorten(key: string): string {
  const blank = key.search(/\s/);
  if (blank >= 0) return `${key.slice(0, Math.min(blank, 40))}…`;
  return key.length <= 80 ? key : `${key.slice(0, 4)}…(${key.length} characters)`;
}

export function getAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = Object.hasOwn(at, part) ? (at as Record<string | number, unknown>)[part] : undefined;
  }
  return at;
}

/** Field names whose value may never be shown. `publicKey` is public; a taint's `key` is a name. */
export function isSecretPath(path: Path): boolean {
  const name = path.findLast((part) => typeof part === "string") ?? "";
  if (name === "publicKey") return false;
  return /token$|pass$|[a-z]Key$|passphrase$|password$|^operatorCA$/i.test(String(name)) && name !== "generateKey";
}
