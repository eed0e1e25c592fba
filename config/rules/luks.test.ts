import { describe } from "bun:test";
import { disk, ruleCases } from "../../test/support/rule-cases.ts";

const luks = (...fields: string[]): string => `role: single\nluks: [{name: v, ${fields.join(", ")}}]\n`;
const array = (filesystem: string): string =>
  `raid: [{name: r, level: 1, devices: [${disk("a")}, ${disk("b")}], filesystem: ${filesystem}}]\n`;

describe("luks", () =>
  ruleCases([
    ["a disk that the TPM opens", luks(`device: ${disk("a")}`)],
    ["a passphrase of a file", luks(`device: ${disk("a")}`, "unlock: passphrase", "passphraseFrom: {file: /p}")],
    [
      "unlock by passphrase without one",
      luks(`device: ${disk("a")}`, "unlock: passphrase"),
      "missing luks[0].passphrase",
    ],
    ["a passphrase with the TPM", luks(`device: ${disk("a")}`, "passphrase: abc"), "conflict luks[0].passphrase"],
    [
      "both passphrases: the later one",
      luks(`device: ${disk("a")}`, "unlock: passphrase", "passphrase: abc", "passphraseFrom: {file: /p}"),
      "conflict luks[0].passphraseFrom",
    ],
    ["on an array without a filesystem", `${luks("device: /dev/md/r")}${array("none")}`],
    ["on an array with one of its own", `${luks("device: /dev/md/r")}${array("xfs")}`, "conflict luks[0].device"],
    ["on an array that is not declared", luks("device: /dev/md/r"), "reference luks[0].device"],
    [
      "a source that is no source",
      luks(`device: ${disk("a")}`, "unlock: passphrase", "passphraseFrom: {authFile: /a}"),
      "missing luks[0].passphraseFrom.url",
      "conflict luks[0].passphraseFrom.authFile",
    ],
    [
      "two of one name",
      `role: single\nluks: [{name: v, device: ${disk("a")}}, {name: v, device: ${disk("b")}}]\n`,
      "conflict luks[1].name",
    ],
  ]));
