/** What must hold for any text: an answer, a place, and no secret in it. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { formatFinding } from "../kit/finding.ts";
import { parseDocument } from "./load.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const nowMs = Date.UTC(2027, 0, 1);
const folder = join(import.meta.dir, "../docs/examples");
const examples = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));

const KEY_A = "7hDUcKsaepawVY5NXmcH92omo1dQvB2Kj1v7LE4IcGc=";
const KEY_B = "gjEfJTaIkDa4lAGR1q0xkDEGnn96hw/IMWgj0Cl5YjU=";
const secrets = ["H4sIAAAAtokensecret", "vrrpPw77", KEY_A, KEY_B, "correct-horse-battery"];
const withSecrets = `role: controller+worker
cluster:
  name: harbour
  endpoint: 192.0.2.100
join:
  token: H4sIAAAAtokensecret
ha:
  enabled: true
  interface: eno1
  authPass: vrrpPw77
  virtualIP: 192.0.2.100/24
luks:
  - name: vault
    device: /dev/disk/by-id/a
    passphrase: correct-horse-battery
    mountPoint: /srv/vault
wireguard:
  - name: wg0
    privateKey: ${KEY_A}
    address: 10.9.0.1/24
    peers:
      - publicKey: oaz/T6GntS+g8BFaovEUO64kxo89I2d5WO77wRV9RH4=
        presharedKey: ${KEY_B}
        allowedIPs: [10.9.0.2/32]
`;

/** One slip of the hand: characters gone, added or swapped, lines gone, doubled or moved. */
const slip = fc.record({
  kind: fc.constantFrom("cut", "insert", "line-gone", "line-twice", "indent", "outdent", "swap"),
  at: fc.nat(),
  text: fc.constantFrom(
    ":",
    " ",
    "- ",
    "\n",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "*",
    "&",
    "!",
    "'",
    '"',
    "#",
    "null",
    "%",
    "@",
    "|",
    ">",
  ),
  length: fc.integer({ min: 1, max: 6 }),
});
type Slip = typeof slip extends fc.Arbitrary<infer T> ? T : never;

function apply(text: string, { kind, at, text: added, length }: Slip): string {
  const offset = at % (text.length + 1);
  const lines = text.split("\n");
  const line = at % lines.length;
  const current = lines[line] ?? "";
  switch (kind) {
    case "cut":
      return text.slice(0, offset) + text.slice(offset + length);
    case "insert":
      return text.slice(0, offset) + added + text.slice(offset);
    case "line-gone":
      return lines.toSpliced(line, 1).join("\n");
    case "line-twice":
      return lines.toSpliced(line, 0, current).join("\n");
    case "indent":
      return lines.with(line, `  ${current}`).join("\n");
    case "outdent":
      return lines.with(line, current.replace(/^ {1,2}/, "")).join("\n");
    case "swap":
      return lines
        .toSpliced(line, 1)
        .toSpliced((line + length) % lines.length, 0, current)
        .join("\n");
    default:
      return text;
  }
}

function check(text: string | Uint8Array): string {
  const { findings, document } = parseDocument(text, { file: "n.yaml", nowMs });
  expect(document === undefined).toBe(findings.some(({ severity }) => severity === "error"));
  for (const { line, column, message } of findings) {
    expect(line).toBeGreaterThan(0);
    expect(column).toBeGreaterThan(0);
    expect(message.length).toBeGreaterThan(0);
  }
  return JSON.stringify(findings) + findings.map(formatFinding).join("\n");
}

describe("any text", () => {
  test("noise never crashes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => void check(text)),
      { numRuns: 400 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void check(bytes)),
      { numRuns: 300 },
    );
  });

  test("any JSON under any field never crashes", () => {
    const keys = [
      "role",
      "cluster",
      "network",
      "join",
      "node",
      "addons",
      "manifests",
      "ha",
      "upgrades",
      "backup",
      "raid",
    ];
    const more = ["luks", "disks", "zfs", "wireguard", "api", "k0s", "kubernetes", "install", "storage"];
    const any = fc.dictionary(fc.constantFrom(...keys, ...more), fc.jsonValue({ maxDepth: 4 }), { minKeys: 1 });
    fc.assert(
      fc.property(any, (value) => void check(JSON.stringify(value))),
      { numRuns: 500 },
    );
  });

  test("examples with slips of the hand never crash", () => {
    fc.assert(
      fc.property(fc.constantFrom(...examples), fc.array(slip, { minLength: 1, maxLength: 4 }), (text, slips) => {
        check(slips.reduce(apply, text));
      }),
      { numRuns: 800 },
    );
  });

  test("a document with one slip never shows a secret", () => {
    check(withSecrets);
    fc.assert(
      fc.property(slip, (one) => {
        const output = check(apply(withSecrets, one));
        for (const secret of secrets) expect(output).not.toContain(secret);
      }),
      { numRuns: 3000 },
    );
  });

  test("a megabyte of brackets, aliases and keys is answered", () => {
    check(`role: single\nx: ${"[".repeat(1_000_000)}`);
    check(`role: single\nk0s: {patch: {a: &a [x], b: [${"*a, ".repeat(200_000)}]}}\n`);
    check(`role: single\nnode: {labels: {${Array.from({ length: 40_000 }, (_, i) => `k${i}: v`).join(", ")}}}\n`);
  }, 80_000);
});
