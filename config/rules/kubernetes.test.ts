import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

describe("kubernetes.version", () => {
  ruleCases(
    [
      ["a listed one", "role: single\nkubernetes: {version: v1.36.3+k0s.1}\n"],
      [
        "one that the release does not list",
        "role: single\nkubernetes: {version: v1.36.3+k0s.2}\n",
        "unlisted-version kubernetes.version",
      ],
      ["a wrong form is not also unlisted", "role: single\nkubernetes: {version: v1.36}\n", "value kubernetes.version"],
    ],
    { k0sVersions: ["v1.36.3+k0s.1"] },
  );
  ruleCases([["no list, no warning", "role: single\nkubernetes: {version: v1.36.3+k0s.2}\n"]]);
});
