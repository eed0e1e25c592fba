import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

const object = "{apiVersion: v1, kind: Namespace}";
const stack = (name: string, ...files: readonly (readonly [string, string])[]): string =>
  `  - name: ${name}\n    files: [${files.map(([file, content]) => `{name: ${file}, content: ${JSON.stringify(content)}}`).join(", ")}]\n`;
const single = "role: single\nmanifests:\n";

describe("manifests", () =>
  ruleCases([
    [
      "an object, and empty documents among others",
      `${single}${stack("a", ["a.yaml", `${object}\n---\n---\n${object}\n`])}`,
    ],
    [
      "only empty ones",
      `${single}${stack("a", ["a.yaml", "---\n# nothing\n"])}`,
      "value manifests[0].files[0].content",
    ],
    ["no kind", `${single}${stack("a", ["a.yaml", "apiVersion: v1\n"])}`, "value manifests[0].files[0].content"],
    ["no YAML", `${single}${stack("a", ["a.yaml", "a: [\n"])}`, "value manifests[0].files[0].content"],
    ["a stack without a file", `${single}${stack("a")}`, "value manifests[0].files"],
    [
      "two files of one name",
      `${single}${stack("a", ["a.yaml", object], ["a.yaml", object])}`,
      "conflict manifests[0].files[1].name",
    ],
    [
      "two stacks of one name",
      `${single}${stack("a", ["a.yaml", object])}${stack("a", ["a.yaml", object])}`,
      "conflict manifests[1].name",
    ],
    ["a stack of k0s itself", `${single}${stack("coredns", ["a.yaml", object])}`, "value manifests[0].name"],
    [".yml is not read by k0s", `${single}${stack("a", ["a.yml", object])}`, "value manifests[0].files[0].name"],
    [
      "not on a worker",
      `role: worker\njoin: {tokenFrom: {file: /t}}\nmanifests:\n${stack("a", ["a.yaml", object])}`,
      "role manifests",
    ],
  ]));
