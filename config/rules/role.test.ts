import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

describe("role", () =>
  ruleCases([
    ["none waits to be told, while the API is on", "node: {name: a}\n"],
    ["none with the API off could never be told", "api: {enabled: false}\n", "missing role"],
    ["a role that is wrong is not also missing", "role: boss\napi: {enabled: false}\n", "value role"],
    ["rules that depend on the role don't run without one", "addons: [{name: a, chart: oci://r.example/a}]\n"],
  ]));
