import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { refusal } from "./api-server.ts";
import { openStore } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "rbac-"));
const store = openStore(join(folder, "db"));
afterAll(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

const may = (groups: readonly string[], name: string, method: string, path: string): boolean =>
  refusal(store, { method, path, query: new URLSearchParams(), body: "", contentType: "" }, { name, groups }) ===
  undefined;

describe("who may do what at the stand-in's API, as at a real one", () => {
  const kubelet = ["system:nodes"];
  test("a kubelet makes and updates its own Node, but can't delete it: a worker that is reset leaves it behind", () => {
    expect(may(kubelet, "system:node:w1", "POST", "/api/v1/nodes")).toBe(true);
    expect(may(kubelet, "system:node:w1", "PATCH", "/api/v1/nodes/w1")).toBe(true);
    expect(may(kubelet, "system:node:w1", "PATCH", "/api/v1/nodes/w2")).toBe(false);
    expect(may(kubelet, "system:node:w1", "DELETE", "/api/v1/nodes/w1")).toBe(false);
    expect(may(["system:masters"], "admin", "DELETE", "/api/v1/nodes/w1")).toBe(true);
  });
  test("a bootstrap token reads what it asked to be signed, and nothing else", () => {
    const token = ["system:bootstrappers"];
    const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests/x";
    expect(may(token, "system:bootstrap:abcdef", "GET", requests)).toBe(true);
    expect(may(token, "system:bootstrap:abcdef", "GET", "/api/v1/nodes/w1")).toBe(false);
    expect(may(token, "system:bootstrap:abcdef", "DELETE", requests)).toBe(false);
  });
});
