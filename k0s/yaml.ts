/**
 * The YAML that k0s and Helm read. Both read YAML 1.1 (sigs.k8s.io/yaml), the rest of the world 1.2, so what is
 * written here reads the same in both: every string is quoted (or a literal block), keys are plain only where no
 * version takes them for something else, floats keep their dot, maps are sorted. Equal data, equal bytes.
 */

/** Line breaks of YAML 1.1, non-characters and controls: written as escapes. */
// oxlint-disable-next-line no-control-regex
const ESCAPED =
  /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** With a letter other than e: some readers of 1.1 take `e0` for a number. */
const PLAIN_KEY = /^(?=.*[A-DF-Za-df-z])[A-Za-z_][A-Za-z0-9_./-]*$/;
const NOT_PLAIN = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

export function quote(text: string): string {
  return JSON.stringify(text).replace(
    ESCAPED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const writeKey = (key: string): string => (PLAIN_KEY.test(key) && !NOT_PLAIN.test(key) ? key : quote(key));

function writeNumber(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  if (!Number.isFinite(value)) return value > 0 ? ".inf" : "-.inf";
  const text = Object.is(value, -0) ? "-0.0" : String(value);
  // 1e+21 is a string in YAML 1.1, whose floats need a dot.
  return /^-?\d+e/.test(text) ? text.replace("e", ".0e") : text;
}

/** A literal block keeps a diff readable; only text that both versions fold in no way may stand in one. */
function canBeBlock(text: string): boolean {
  if (!text.includes("\n") || !text.endsWith("\n") || text.endsWith("\n\n")) return false;
  if (text.startsWith("\n") || text.startsWith(" ")) return false;
  // oxlint-disable-next-line no-control-regex
  return !/[\u0000-\u0009\u000b-\u001f]|[ ]\n/.test(text) && text.search(ESCAPED) === -1;
}

const isScalar = (value: unknown): boolean => value === null || typeof value !== "object";

const isEmpty = (value: object): boolean => (Array.isArray(value) ? value : Object.keys(value)).length === 0;

const byCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function writeScalar(value: unknown, indent: string): string {
  switch (typeof value) {
    case "string":
      return canBeBlock(value) ? `|\n${value.replace(/^(?=[^\n])/gm, indent).slice(0, -1)}` : quote(value);
    case "number":
      return writeNumber(value);
    case "bigint":
    case "boolean":
      return String(value);
    default:
      return "null";
  }
}

/** Adds the lines of a map or list that is not empty, each with its indentation. */
function writeLines(value: object, indent: string, lines: string[]): void {
  const put = (head: string, item: unknown): void => {
    const deeper = `${indent}  `;
    if (isScalar(item)) lines.push(`${indent}${head} ${writeScalar(item, deeper)}`);
    else if (isEmpty(item as object)) lines.push(`${indent}${head} ${Array.isArray(item) ? "[]" : "{}"}`);
    else if (head === "-") {
      const first = lines.length;
      writeLines(item as object, deeper, lines);
      lines[first] = `${indent}- ${lines[first]?.slice(deeper.length) ?? ""}`;
    } else {
      lines.push(`${indent}${head}`);
      writeLines(item as object, deeper, lines);
    }
  };
  if (Array.isArray(value)) for (const item of value) put("-", item);
  else {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    for (const [key, item] of entries.toSorted(([a], [b]) => byCodeUnits(a, b))) put(`${writeKey(key)}:`, item);
  }
}

/** Plain data (no undefined inside lists) as one YAML document that ends in a line break. */
export function writeYaml(value: unknown): string {
  if (isScalar(value)) return `${writeScalar(value, "  ")}\n`;
  const object = value as object;
  if (isEmpty(object)) return Array.isArray(object) ? "[]\n" : "{}\n";
  const lines: string[] = [];
  writeLines(object, "", lines);
  return `${lines.join("\n")}\n`;
}
