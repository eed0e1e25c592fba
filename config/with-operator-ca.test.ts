import { describe, expect, test } from "bun:test";
import { withOperatorCa } from "./with-operator-ca.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n";
const CA = "  operatorCA: |\n    -----BEGIN CERTIFICATE-----\n    MII\n    -----END CERTIFICATE-----\n";

describe("a document that names another operator CA", () => {
  test.each([
    ["without an api block", "role: single # why\n", `role: single # why\napi:\n  enabled: true\n${CA}`],
    ["an empty api block was no map", "role: single\napi:\n", `role: single\napi:\n  enabled: true\n${CA}`],
    ["another source of it", "api:\n  operatorCAFrom: { file: /x }\n", `api:\n${CA}`],
    ["in a cloud-config", "corium:\n  role: single\n", undefined],
  ])("%s", (_, text, wanted) => {
    const made = withOperatorCa(text, PEM);
    if (wanted === undefined) expect(made).toMatchObject({ ok: true, value: expect.stringContaining("operatorCA") });
    else expect(made).toEqual({ ok: true, value: wanted });
  });

  test("what it takes out has a name that is used elsewhere: refused, where the daemon answered 500", () => {
    const text = "api:\n  operatorCAFrom: { file: &ca /etc/corium/ca.pem }\njoin:\n  tokenFrom: { file: *ca }\n";
    expect(withOperatorCa(text, PEM)).toMatchObject({ ok: false, error: { code: "not-editable" } });
  });
});
