import { describe, expect, test } from "bun:test";
import { parseObject } from "./parse.ts";

const ref = { resource: "applications.argoproj.io", namespace: "argocd", name: "cni" };
const ended = { exitCode: 0, stdout: "", stderr: "", timedOut: false };

describe("what kubectl prints for one object", () => {
  test.each(["", "{", '{"metadata":{"name":"cni"}', "null", "[]", '"cni"', "{}", '{"kind":"List","items":[]}'])(
    "exit status 0 with %p is no answer: it was an Application that will never be synced",
    (stdout) => expect(parseObject(ref, { ...ended, stdout })).toMatchObject({ is: "unknown" }),
  );

  test("the object itself, and nobody else's", () => {
    const printed = (name: string): string => JSON.stringify({ metadata: { name } });
    expect(parseObject(ref, { ...ended, stdout: printed("cni") }).is).toBe("there");
    expect(parseObject(ref, { ...ended, stdout: printed("other") }).is).toBe("unknown");
  });

  test("ten megabytes of complaint were recorded, and shown by status, whole", () => {
    const found = parseObject(ref, { ...ended, exitCode: 1, stderr: "x".repeat(10 * 1024 * 1024) });
    expect(found).toEqual({ is: "unknown", why: "x".repeat(300) });
  });

  test("killed by a signal, it says so", () => {
    expect(parseObject(ref, { ...ended, exitCode: null })).toEqual({ is: "unknown", why: "kubectl was killed" });
  });
});
