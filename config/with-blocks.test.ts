import { describe, expect, test } from "bun:test";
import { parseDocument } from "./load.ts";
import { blocksOf, withBlocks } from "./with-blocks.ts";

const valueOf = <T>(result: { readonly ok: true; readonly value: T } | { readonly ok: false }): T => {
  if (!result.ok) throw new Error(JSON.stringify(result));
  return result.value;
};

const OWN = `# the second controller
role: controller
node:
  name: n2 # in the cellar
cluster:
  name: shop
addons:
  - name: old
    chart: oci://r.example.com/old
backup:
  enabled: true
`;

describe("blocks of one document in another", () => {
  test("come in place of its own, with their comments; all else stays as it was written", () => {
    const given = `role: controller
node: { name: n1 }
addons:
  # for the doors
  - name: ingress
    chart: oci://r.example.com/ingress
    values: { port: 0x1f, big: 12345678901234567890 }
manifests:
  - name: site
    files:
      - name: a.yaml
        content: |
          kind: ConfigMap
`;
    const composed = valueOf(withBlocks(OWN, valueOf(blocksOf(given))));
    expect(composed).toBe(`# the second controller
role: controller
node:
  name: n2 # in the cellar
cluster:
  name: shop
addons:
  # for the doors
  - name: ingress
    chart: oci://r.example.com/ingress
    values: { port: 0x1f, big: 12345678901234567890 }
backup:
  enabled: true
manifests:
  - name: site
    files:
      - name: a.yaml
        content: |
          kind: ConfigMap
`);
  });

  test("what is the same on every controller goes where it is not given; what is the node's own stays", () => {
    const { document } = parseDocument(valueOf(withBlocks(OWN, "")), { nowMs: 0 });
    expect([document?.addons, document?.backup?.enabled]).toEqual([[], true]);
  });

  test("a document in a cloud-config, on both sides", () => {
    const own = "#cloud-config\ncorium:\n  role: controller\n  node: {name: n2}\n";
    const given = "#cloud-config\ncorium:\n  addons: [{name: a, chart: 'oci://r.example.com/a'}]\n  role: controller\n";
    const composed = valueOf(withBlocks(own, valueOf(blocksOf(given))));
    expect(composed.startsWith("#cloud-config\n")).toBe(true);
    const { document } = parseDocument(composed, { nowMs: 0 });
    expect([document?.node.name, document?.addons.map(({ name }) => name)]).toEqual(["n2", ["a"]]);
  });

  test("a value that is named elsewhere in the document is written out", () => {
    const given = "cluster: {name: &n shop}\naddons: [{name: *n, chart: 'oci://r.example.com/a'}]\n";
    const blocks = valueOf(blocksOf(given));
    expect(blocks).not.toMatch(/[&*]n/);
    expect(parseDocument(blocks, { nowMs: 0 }).document?.addons[0]?.name).toBe("shop");
  });

  test("refused: another block, no map, and an own document that uses a value named in what goes", () => {
    expect(withBlocks(OWN, "role: worker\n")).toMatchObject({ ok: false, error: { code: "blocks" } });
    expect(withBlocks(OWN, "- a\n")).toMatchObject({ ok: false, error: { code: "blocks" } });
    const tangled = "addons: [{name: &n a, chart: 'oci://r.example.com/a'}]\nnode: {name: *n}\n";
    expect(withBlocks(tangled, "")).toMatchObject({ ok: false, error: { code: "not-editable" } });
  });

  test("a document without any of them has no blocks", () => {
    for (const without of ["role: single\n", ""]) {
      const blocks = valueOf(blocksOf(without));
      // An empty text is no document: taking the last add-on out was refused as one that is not valid.
      expect(parseDocument(blocks, { nowMs: 0 }).findings).toEqual([]);
      expect(parseDocument(valueOf(withBlocks(OWN, blocks)), { nowMs: 0 }).document?.addons).toEqual([]);
    }
  });
});
