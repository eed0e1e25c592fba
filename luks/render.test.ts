import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { crypttabLine, renderCrypttab, withLine } from "./render.ts";

const line = (name: string, uuid = "u"): string => crypttabLine({ name, uuid, unlock: "tpm2" });
const nameArbitrary = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,8}$/);

describe("crypttab", () => {
  test("our lines stand between markers, sorted, and what is outside is left as it is", () => {
    const foreign = "# by hand\nother UUID=1 none luks\n";
    const text = withLine(withLine(foreign, line("b")), line("a"));
    expect(text).toBe(
      `${foreign}# corium: volumes of this node, written by corium\n${line("a")}\n${line("b")}\n# corium: end\n`,
    );
    expect(withLine(text, line("b", "new"))).toBe(text.replace(line("b"), line("b", "new")));
  });

  test("in whatever order and however often, each volume has one line; written again, nothing changes", () => {
    fc.assert(
      fc.property(fc.array(nameArbitrary), fc.array(fc.stringMatching(/^[a-z =#]{0,12}$/)), (names, outside) => {
        const start = outside.map((each) => `${each}\n`).join("");
        const text = names.reduce((so, name) => withLine(so, line(name)), start);
        expect(names.reduce((so, name) => withLine(so, line(name)), text)).toBe(text);
        for (const name of names) expect(text.split("\n").filter((each) => each === line(name))).toHaveLength(1);
        for (const each of outside.filter((one) => one !== "")) expect(text.split("\n")).toContain(each);
      }),
    );
  });

  test("half a block, as no program of ours leaves it, is somebody's text", () => {
    const half = "# corium: volumes of this node, written by corium\nx UUID=1 none luks\n";
    expect(withLine(half, line("a"))).toStartWith(half);
  });

  test("without volumes there is no file", () => {
    expect(renderCrypttab([])).toBeUndefined();
    expect(renderCrypttab([{ name: "v", uuid: "1", unlock: "passphrase" }])).toContain(
      "corium-luks-v UUID=1 /var/lib/corium/luks/v.key luks,headless=1,nofail,token-timeout=10s\n",
    );
  });
});
