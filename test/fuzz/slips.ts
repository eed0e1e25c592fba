/** What people do to a whole document: fields of the wrong kind, at their bounds, misspelt, twice, secrets astray. */
import { stringify } from "yaml";
import { fromEntries } from "../../config/schema/walk.ts";
import { growDocument, type Grown, type Plain } from "./grammar.ts";
import { pick, type Draw } from "./secrets.ts";

export interface FuzzDocument {
  readonly text: string | Uint8Array;
  /** None of these may be seen in anything that is made of the document, not even six characters of one. */
  readonly secrets: readonly string[];
}

const ODD: readonly unknown[] = [
  null, true, false, 0, -1, 1, 2, 255, 256, 65535, 65536, 1e21, 1e300, 2 ** 53, 0.5, "", " ", "yes", "no", "012", "0o17", "1:30",
  "1.10", "0x7f", "*", "~", "%i", "$(id)", "../..", "/", "//", "/dev/sda", "/dev/sda1", "/dev/md/x", "/var/lib", "10.244.0.0/16", "::/0",
  "010.9.0.7", "fe80::1%eth0", "256.1.1.1", "a".repeat(64), "key".padEnd(300), "\u001b[2J\u0007", "\u202eabc", "é", "😀", "\ud800", "a\nb: c\n", "- a",
  "constructor", "__proto__", "toString", "https://user:pass@x/", "http://x", "-----BEGIN PRIVATE KEY-----", "0 3 * * *", "*:*:*/5", "@reboot",
  "2027-1-1 24:00", "Mon..", [], {}, [null], [[]], [{}], { a: 1 }, { url: "https://x" }, { file: "/x", url: "https://x" }, ["a", "a"],
]; // prettier-ignore
const odd = (draw: Draw): unknown => structuredClone(pick(draw, ODD));
const KEYS = ["__proto__", "constructor", "toString", "<<", "frobnicate", "a b", "é", "", "x".repeat(90), "1", "null", "role", "name", "\u001b[2J"]; // prettier-ignore

/** Where the schema, not the user, says which keys there are. */
const SECRET_MAPS = ["join", "ha", "luks", "wireguard", "peers", "api"];
const SECRET_FIELDS = ["token", "authPass", "passphrase", "privateKey", "presharedKey"];
const FREE = ["labels", "values", "patch", "options", "filesystemOptions", "datasets"];

interface Place {
  readonly parent: Plain | unknown[];
  readonly key: string | number;
  /** The nearest named field above. */
  readonly field: string;
}

/** Every value with the map or list that it is in, free maps as one. */
function placesIn(value: unknown, field: string): Place[] {
  if (typeof value !== "object" || value === null || FREE.includes(field)) return [];
  if (Array.isArray(value))
    return value.flatMap((item, key) => [{ parent: value, key, field }, ...placesIn(item, field)]);
  return Object.entries(value).flatMap(([key, item]) => [
    { parent: value as Plain, key, field },
    ...placesIn(item, key),
  ]);
}

const at = ({ parent, key }: Place): unknown => (parent as Plain)[key];
const put = ({ parent, key }: Pick<Place, "parent" | "key">, value: unknown): void =>
  void Object.defineProperty(parent, key, { value, enumerable: true, writable: true, configurable: true });

function misspell(draw: Draw, word: string): string {
  const index = draw(Math.max(0, word.length - 1));
  const [before, after] = [word.slice(0, index), word.slice(index)];
  return pick(draw, [before + after.slice(1), `${before}e${after}`, word.toUpperCase(), `${word}s`]);
}

function slipOnce(draw: Draw, { tree, secrets }: Grown): void {
  const places = placesIn(tree, "");
  if (places.length === 0) return;
  const place = pick(draw, places);
  const { parent, key } = place;
  const kind = draw(9);
  if (kind <= 2) put(place, odd(draw));
  else if (kind === 3 && Array.isArray(parent)) parent.splice(Number(key), 1);
  else if (kind === 3) Reflect.deleteProperty(parent, key);
  else if (kind === 4 && !Array.isArray(parent)) put({ parent, key: pick(draw, KEYS) }, odd(draw));
  else if (kind === 5 && !Array.isArray(parent)) put({ parent, key: misspell(draw, String(key)) }, at(place));
  else if (kind === 6 && Array.isArray(parent)) parent.push(structuredClone(at(place)));
  else if (kind === 7) put(place, [at(place)]);
  else if (secrets.length > 0) strayOnce(draw, places, pick(draw, secrets));
}

/** A secret as a key, in a list or a map, under a misspelt name, or in the field beside its own. */
function strayOnce(draw: Draw, places: readonly Place[], secret: string): void {
  const inMaps = places.filter(({ parent, field }) => SECRET_MAPS.includes(field) && !Array.isArray(parent));
  if (inMaps.length === 0) return;
  const { parent } = pick(draw, inMaps);
  const owner = pick(draw, SECRET_FIELDS);
  const value = pick(draw, [null, true, "x", { a: 1 }]);
  pick<() => void>(draw, [
    () => put({ parent, key: secret }, value),
    () => put({ parent, key: `${owner} ${secret}` }, null),
    () => put({ parent, key: misspell(draw, owner) }, secret),
    () => put({ parent, key: owner }, [secret]),
    () => put({ parent, key: owner }, { [secret]: value }),
    () => put({ parent, key: `${owner}From` }, secret),
    () => put({ parent, key: `${owner}From` }, { [secret]: value }),
    () => put({ parent, key: pick(draw, ["generateKey", "unlock"]) }, secret),
  ])();
}

/** As cloud-init's user would embed it. */
const embed = (tree: Plain): Plain => ({
  hostname: "shop-7",
  users: [{ name: "ops" }],
  runcmd: [["id"]],
  corium: tree,
});

function write(draw: Draw, tree: Plain): string {
  const indent = draw(3);
  if (draw(1) === 1) return JSON.stringify(tree, null, indent);
  const defaultStringType = pick(draw, [
    "PLAIN",
    "QUOTE_SINGLE",
    "QUOTE_DOUBLE",
    "BLOCK_LITERAL",
    "BLOCK_FOLDED",
  ] as const);
  return stringify(tree, {
    defaultStringType,
    defaultKeyType: "PLAIN",
    lineWidth: pick(draw, [0, 20, 80]),
    collectionStyle: pick(draw, ["any", "block", "flow"] as const),
    aliasDuplicateObjects: draw(1) === 1,
  });
}

/** Whole in two of five cases, else with one to four slips; in either shape, in many a style. */
export function slippedDocument(draw: Draw): FuzzDocument {
  const { tree, secrets } = growDocument(draw);
  const grown = { tree: fromEntries(Object.entries(tree)), secrets };
  const slips = pick(draw, [0, 0, 1, 2, 4]);
  for (let slip = 0; slip < slips; slip++) slipOnce(draw, grown);
  const isEmbedded = draw(3) === 0;
  const body = write(draw, isEmbedded ? embed(grown.tree) : grown.tree);
  const text = isEmbedded ? `#cloud-config\n${body}` : body;
  const ending = pick<(line: string) => string>(draw, [
    (line) => line,
    (line) => line,
    (line) => line.replaceAll("\n", "\r\n"),
    (line) => `\ufeff${line}`,
    (line) => `# a comment\n---\n${line}\n...\n`,
  ]);
  return { text: ending(text), secrets };
}
