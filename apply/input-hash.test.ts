import { expect, test } from "bun:test";
import { Secret } from "../kit/secret.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { type HashedInputs, inputHash, secretFingerprints } from "./input-hash.ts";
import { RENDER_VERSION } from "./render-version.ts";

const addon = (name: string) => ({ name, chart: `oci://r.example.com/${name}`, namespace: "default" });
const inputs = (more: Partial<HashedInputs> = {}): HashedInputs => ({
  document: makeDocument({ addons: [addon("a"), addon("b")] }),
  secrets: {},
  fingerprintKey: "key",
  addresses: { nodeIp: "192.0.2.2" },
  hostname: "c1",
  k0sVersion: "v1.36.3+k0s.2",
  ...more,
});
const secret = (field: string, text: string) => secretFingerprints(new Map([[field, new Secret(field, text)]]), "key");

test("another order of a named list, or a spelt-out default, is the same input", () => {
  const reordered = makeDocument({ addons: [addon("b"), addon("a")] });
  expect(inputHash(inputs({ document: reordered }))).toBe(inputHash(inputs()));
  const spelt = {
    ...inputs().document,
    backup: { enabled: false, schedule: "daily", path: "/var/lib/corium/backups", keep: 7 },
  };
  expect(inputHash(inputs({ document: spelt }))).toBe(inputHash(inputs()));
});

test("each input counts", () => {
  const others: Partial<HashedInputs>[] = [
    { document: makeDocument({ addons: [addon("a")] }) },
    { secrets: secret("ha.authPassFrom", "x") },
    { addresses: { nodeIp: "192.0.2.3" } },
    { hostname: "c2" },
    { k0sVersion: "v1.36.4+k0s.0" },
    { isHandedOver: true },
    { renderVersion: RENDER_VERSION + 1 },
  ];
  const hashes = new Set([inputs(), ...others.map(inputs)].map(inputHash));
  expect(hashes.size).toBe(others.length + 1);
});

test("a rotated secret counts, a first-boot one never", () => {
  const hash = (field: string, text: string) => inputHash(inputs({ secrets: secret(field, text) }));
  expect(hash("ha.authPassFrom", "a")).not.toBe(hash("ha.authPassFrom", "b"));
  expect(hash("join.tokenFrom", "a")).toBe(inputHash(inputs()));
  expect(hash("luks[data].passphraseFrom", "a")).toBe(inputHash(inputs()));
});
