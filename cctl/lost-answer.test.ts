/** An answer to an apply that is lost on the way: the node is asked what came of it. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import type { Operation } from "../state/model.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import {
  applying,
  type Enrolled,
  enrollScripted,
  operation,
  paths,
  plan,
  requesterWith,
} from "../test/support/scripted-apply.ts";
import type { Received, Scripted, ScriptedNode } from "../test/support/scripted-node.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

async function enrolled(answer: (request: Received) => Scripted): Promise<Enrolled> {
  const made = await enrollScripted(answer);
  node = made.node;
  return made;
}

test("an answer that is lost on the way is not taken for a failure", async () => {
  let isApplied = false;
  const { host } = await enrolled((request) => {
    if (request.path === "/v1/operations") return { body: { operations: isApplied ? [operation("running")] : [] } };
    if (request.path !== "/v1/config") return applying([operation("succeeded")])(request);
    isApplied = true;
    return { body: "", breaksOff: true };
  });
  const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"]);
  expect(ran.err).toBe("cctl: the answer was lost on the way; the operation has succeeded\n");
  expect(ran.out).toContain("phase      succeeded\n");
  expect(ran.status).toBe(0);
});

test("what another operator applied meanwhile passed for one's own when the answer was lost", async () => {
  let isLost = false;
  let phase: Operation["phase"] = "succeeded";
  const of = requesterWith("SHA256:another");
  const { host, node: peer } = await enrolled((request) => {
    const theirs = operation(phase, { id: "theirs", requester: of });
    if (request.path === "/v1/operations") return { body: { operations: isLost ? [theirs] : [] } };
    if (request.path !== "/v1/config") return applying([theirs])(request);
    isLost = true;
    return { body: "", breaksOff: true };
  });
  const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"]);
  expect([ran.status, ran.err.includes("was lost")]).toEqual([3, true]);
  isLost = false;
  phase = "awaiting-confirmation";
  // What waits to be confirmed may be theirs as well: nobody else is asked whether it may stay.
  const kept = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--confirm-within", "2m"], {
    answers: ["y", "y"],
  });
  expect(kept.status).toBe(3);
  expect(paths(peer).filter((line) => line.endsWith("/confirm"))).toEqual([]);
});

test("a connection that is lost for a while: the node is asked again what came of it", async () => {
  let isApplied = false;
  let lost = 5;
  const { host } = await enrolled((request) => {
    if (request.path === "/v1/config") {
      isApplied = true;
      return { body: "", breaksOff: true };
    }
    if (isApplied && lost > 0) {
      lost -= 1;
      return { body: "", breaksOff: true };
    }
    if (request.path === "/v1/operations") return { body: { operations: isApplied ? [operation("running")] : [] } };
    return applying([operation("succeeded")])(request);
  });
  const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"]);
  expect([ran.status, ran.err, lost]).toEqual([
    0,
    "cctl: the answer was lost on the way; the operation has succeeded\n",
    0,
  ]);
});

test("an answer that is lost before anything was begun is a failure", async () => {
  const { host } = await enrolled((request) =>
    request.path === "/v1/config" ? { body: "", breaksOff: true } : applying([])(request),
  );
  expect((await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"])).status).toBe(3);
});

test("the answer is lost while k0s restarts: once the change is made it can still be kept", async () => {
  let isMade = false;
  const { host, node: peer } = await enrolled((request) => {
    const running = operation(isMade ? "awaiting-confirmation" : "running");
    if (request.path === "/v1/operations") return { body: { operations: isMade ? [running] : [] } };
    if (request.path === "/v1/operations/op1") return { body: running };
    if (request.path.endsWith("/confirm")) return { body: plan };
    if (request.path !== "/v1/config") return applying([])(request);
    isMade = true;
    return { body: "", breaksOff: true };
  });
  const argv = ["apply", "node1", "-f", "/n.yaml", "--confirm-within", "2m"];
  expect((await runCctl(host, argv, { answers: ["y", "y"] })).status).toBe(0);
  expect(paths(peer).findLast((line) => line.startsWith("POST"))).toBe("POST /v1/operations/op1/confirm");
});
