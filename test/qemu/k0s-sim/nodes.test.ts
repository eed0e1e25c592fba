import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { at } from "./config.ts";
import { findResource } from "./resources.ts";
import { openStore } from "./store.ts";
import { nodeController } from "./workload.ts";

const folder = mkdtempSync(join(tmpdir(), "nodes-"));
const store = openStore(join(folder, "db"));
afterAll(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

const post = (lastHeartbeatTime: string): unknown =>
  store.put({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "w1" },
    status: { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime }] },
  });

function ready(): unknown {
  const nodes = findResource(store.resources(), "nodes");
  const node = nodes === undefined ? undefined : store.get(nodes, undefined, "w1");
  return at((at(node, "status", "conditions") as readonly unknown[])[0], "status");
}

describe("the stand-in's node controller", () => {
  test("a node whose clock is hours behind the leader's flapped between Ready and Unknown: only its silence counts", () => {
    let nowMs = 0;
    const look = nodeController(store, () => nowMs);
    for (const time of ["2020-01-01T00:00:00.000Z", "2020-01-01T00:00:05.000Z"]) {
      post(time);
      nowMs += 39_000;
      look();
      expect(ready()).toBe("True");
    }
    nowMs += 39_000;
    look();
    expect(ready()).toBe("True");
    nowMs += 1000;
    look();
    expect(ready()).toBe("Unknown");
    post("2020-01-01T00:00:10.000Z");
    look();
    expect(ready()).toBe("True");
  });
});
