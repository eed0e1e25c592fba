import { describe, expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { planApply } from "./plan.ts";

const node = { hostname: "c1", machineId: "0123", addresses: {} };
const plan = (baseline: Document, proposal: Document) => planApply({ baseline, proposal, node, fingerprintKey: "key" });
const addon = (more: object) => ({
  name: "ingress",
  chart: "oci://r.example.com/ingress",
  namespace: "default",
  ...more,
});

test("a chart version: one file, one restart, both named before they happen", () => {
  const found = plan(
    makeDocument({ addons: [addon({ version: "1.0" })] }),
    makeDocument({ addons: [addon({ version: "1.1" })] }),
  );
  expect(found.files.map(({ action, path }) => `${action} ${path}`)).toEqual(["write /etc/k0s/k0s.yaml"]);
  expect(found.files[0]?.diff).toBe(`--- a/etc/k0s/k0s.yaml
+++ b/etc/k0s/k0s.yaml
@@ -9,7 +9,7 @@
         - chartname: "oci://r.example.com/ingress"
           name: "ingress"
           namespace: "default"
-          version: "1.0"
+          version: "1.1"
   network:
     podCIDR: "10.244.0.0/16"
     provider: "kuberouter"
`);
  expect(found.restarts).toEqual(["k0scontroller"]);
  expect(found.consequences[0]).toStartWith("k0scontroller restarts");
  expect(found.consequences[1]).toBe("helm moves ingress from 1.0 to 1.1");
});

test("the undo of a new add-on would uninstall it: said before", () => {
  const found = plan(makeDocument(), makeDocument({ addons: [addon({})] }));
  expect(found.undo.at(-1)).toContain("uninstall ingress");
});

test("automatic upgrades are not in this release: the plan says so", () => {
  const found = plan(makeDocument(), makeDocument({ upgrades: { automatic: "apply", schedule: "weekly" } }));
  expect(found.consequences).toContain(
    "automatic upgrades are not in this release: the timer only writes that to the journal",
  );
  expect(found.files.map(({ path }) => path.split("/").at(-1))).toEqual([
    "corium-upgrade.service",
    "corium-upgrade.timer",
  ]);
  expect(found.restarts).toEqual([]);
  expect(found.timers).toEqual({ gone: [], wanted: ["corium-upgrade.timer"] });
});

test("a refused or unchanged document plans no file", () => {
  expect(plan(makeDocument(), makeDocument()).files).toEqual([]);
  expect(plan(makeDocument(), makeDocument({ node: { name: "x", labels: {}, taints: [] } })).files).toEqual([]);
});

describe("diffs hold no secret", () => {
  test("of a Kubernetes Secret", () => {
    const stack = (password: string) =>
      makeDocument({
        manifests: [
          {
            name: "s",
            files: [
              {
                name: "s.yaml",
                content: `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  anything: ${password}\n`,
              },
            ],
          },
        ],
      });
    const text = JSON.stringify(plan(stack("hunter22"), stack("swordfish")));
    const shown = plan(stack("hunter22"), stack("swordfish")).files[0]?.diff ?? "";
    expect(shown).not.toMatch(/hunter22|swordfish/);
    expect(shown).toMatch(/-\s+anything: hmac-sha256:[0-9a-f]{16}/);
    // The file itself must hold it.
    expect(text).toContain("swordfish");
  });

  test("of what looks like one in chart values", () => {
    const values = (password: string) =>
      makeDocument({ addons: [addon({ values: { auth: { adminPassword: password }, secretName: "tls" } })] });
    const shown = plan(values("hunter22"), values("swordfish")).files[0]?.diff ?? "";
    expect(shown).not.toMatch(/hunter22|swordfish/);
    expect(shown).toContain('secretName: "tls"');
  });
});
