import { expect, test } from "bun:test";
import type { Operation } from "../../state/model.ts";
import { operationText, operationsText, servicesText } from "./lists.ts";

const operation: Operation = {
  id: "op1",
  kind: "apply",
  phase: "failed",
  steps: [
    { id: "k0s:config", title: "write k0s.yaml", state: "done", startedAtMs: 0, endedAtMs: 1500 },
    { id: "k0s:start", title: "restart k0scontroller", state: "failed" },
  ],
  failureReason: "it loops:\nlast line\u0007",
  requester: { kind: "operator", name: "ann", role: "admin", fingerprint: "SHA256:x", address: "10.0.0.9" },
  version: "0.1.0",
  createdAtMs: Date.UTC(2026, 0, 31, 12),
};

test("an operation shows who asked, each step and why it failed", () => {
  expect(operationText(operation)).toBe(`operation  op1
kind       apply
phase      failed
asked by   ann (admin, 10.0.0.9)
began      2026-01-31T12:00:00Z
failed     it loops:
           last line\\x07
version    0.1.0
  + write k0s.yaml  1.5 s
  ! restart k0scontroller
`);
});

test("a clock that was set back made a step last -3569.9 s", () => {
  const steps = [{ id: "a", title: "wait", state: "done", startedAtMs: 3_600_000, endedAtMs: 30_100 }] as const;
  expect(operationText({ ...operation, steps })).toEndWith("\n  + wait\n");
});

test("a listing keeps to one line each, and says all that the newest failure said", () => {
  const row = "2026-01-31T12:00:00Z  apply  failed  ann (admin, 10.0.0.9)  it loops:";
  expect(
    operationsText({ operations: [operation, { ...operation, id: "op0" }] })
      .split("\n")
      .slice(1),
  ).toEqual([`op1  ${row}`, "  last line\\x07", `op0  ${row}`, ""]);
  expect(operationsText({ operations: [] })).toBe("ID  BEGAN  KIND  PHASE  ASKED BY\n");
  expect(servicesText([])).toBe("UNIT  STATE  RESTARTS  RESTARTABLE\n");
});
