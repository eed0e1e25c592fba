import { describe, expect, test } from "bun:test";
import { parseDocument } from "./load.ts";
import { withInstall } from "./with-install.ts";

const chosen = { disk: { serial: "A" }, wipe: false };
const composed = (text: string, install = chosen): string => {
  const result = withInstall(text, install);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
};
const parsed = (text: string) => parseDocument(text, { nowMs: 0 });

describe("a document with another install block", () => {
  test("where there was none it is a document by itself", () => {
    const text = composed("");
    expect(text).toBe("install:\n  disk:\n    serial: A\n");
    expect(parsed(text).document?.install).toEqual({ disk: { serial: "A" }, wipe: false });
  });

  test("everything else stays as it was, comments too", () => {
    const text =
      "# of this site\nrole: single\nnode: {name: n1} # the first\ninstall:\n  disk: {serial: B}\n  wipe: true\n";
    const next = composed(text);
    expect(next).toContain("# of this site\nrole: single\nnode: { name: n1 } # the first\n");
    expect(parsed(next).document).toEqual({
      ...parsed(text).document,
      install: { disk: { serial: "A" }, wipe: false },
    } as never);
  });

  test("in a cloud-config it goes below our key", () => {
    const next = composed("#cloud-config\nusers: []\ncorium:\n  role: single\n", { ...chosen, wipe: true });
    expect(next).toStartWith("#cloud-config\n");
    expect(parsed(next).document).toMatchObject({ role: "single", install: { disk: { serial: "A" }, wipe: true } });
  });

  test("a document of nothing but comments, a flow mapping, a mirror", () => {
    expect(parsed(composed("# nothing yet\n")).document?.install?.disk).toEqual({ serial: "A" });
    expect(parsed(composed("{role: single}")).document).toMatchObject({ role: "single", install: { wipe: false } });
    const mirrored = withInstall("role: single\n", { ...chosen, mirror: "/dev/disk/by-path/x" });
    expect(mirrored.ok && parsed(mirrored.value).document?.install?.mirror).toBe("/dev/disk/by-path/x");
  });

  test("what is no mapping is refused, not overwritten", () => {
    expect(withInstall("- a\n", chosen)).toMatchObject({ ok: false, error: { code: "not-editable" } });
    expect(withInstall("corium: &a\n", chosen).ok).toBe(false);
  });
});
