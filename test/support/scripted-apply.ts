/** A node that answers an apply by a script, and an operator who is enrolled with it. */
import type { ApplyAnswer } from "../../api/contract.ts";
import { fingerprintOfPem } from "../../pki/fingerprint.ts";
import type { Operation } from "../../state/model.ts";
import { type FakeHost, fakeHost } from "./fake-host.ts";
import { runCctl } from "./run-cctl.ts";
import { type Received, type Scripted, type ScriptedNode, scriptedNode } from "./scripted-node.ts";

export interface Enrolled {
  readonly host: FakeHost;
  readonly node: ScriptedNode;
}

/** Of the certificate of whoever was enrolled last. */
let own = "";

/** It is for the caller to close the node. */
export async function enrollScripted(
  answer: (request: Received) => Scripted,
  headers: () => Readonly<Record<string, string>> = () => ({}),
): Promise<Enrolled> {
  const node = await scriptedNode((request) =>
    request.path === "/v1/health" && request.method === "GET"
      ? { body: { status: "ok" }, headers: headers() }
      : answer(request),
  );
  const host = fakeHost({ nowMs: Date.now() });
  await runCctl(host, ["pki", "init"]);
  own = fingerprintOfPem(host.text("/home/ann/.corium/client.crt") ?? "") ?? "none";
  host.put(
    "/home/ann/.corium/config.yaml",
    `nodes:\n  ${node.address}:\n    fingerprint: ${node.fingerprint}\n    name: node1\n`,
  );
  host.put("/n.yaml", "role: single\n");
  return { host, node };
}

export const requesterWith = (fingerprint: string): Operation["requester"] => ({
  kind: "operator",
  name: "ann",
  role: "admin",
  fingerprint,
  address: "192.0.2.1",
});

/** Requested by whoever was enrolled last. */
export const operation = (phase: Operation["phase"], more: Partial<Operation> = {}): Operation => ({
  id: "op1",
  kind: "apply",
  phase,
  steps: [],
  requester: requesterWith(own),
  version: "1.0.0",
  createdAtMs: 0,
  ...more,
});

export const plan: ApplyAnswer = {
  status: "planned",
  fields: [{ path: "addons[metallb]", class: "safe", new: { name: "metallb" } }],
  restarted: ["k0scontroller"],
  files: [{ path: "/etc/k0s/k0s.yaml", diff: "@@ -1 +1 @@\n-a\n+b\n" }],
  consequences: ["pods keep running while k0s restarts"],
  warnings: [],
  etag: '"e1"',
};

/** `end`: what a follower of the operation is told. */
export const applying =
  (end: readonly Operation[]) =>
  ({ path }: Received): Scripted => {
    if (path === "/v1/config?dryRun=true") return { body: plan };
    if (path === "/v1/operations") return { body: { operations: [] } };
    if (path === "/v1/config") return { body: { ...plan, status: "reconciled", operation: "op1" } };
    return { body: end.map((line) => `${JSON.stringify(line)}\n`).join("") };
  };

export const paths = ({ requests }: ScriptedNode): string[] => requests.map(({ method, path }) => `${method} ${path}`);
