import { expect, test } from "bun:test";
import { memoryState } from "../state/open.ts";
import { isReKeyed, reKey } from "./re-key.ts";

test("re-keying forgets the CA and nothing else, and is an event and in the audit", () => {
  const state = memoryState();
  expect(reKey(state, 1)).toMatchObject({ ok: false, error: { code: "unclaimed" } });
  expect([isReKeyed(state), state.audit.last()]).toEqual([false, []]);
  state.claim.record({ operatorCA: "pem", fingerprint: "SHA256:old", atMs: 1, by: "enroll" });
  state.claim.revoke("CN=x", "0a", 1);
  state.meta.set("in-service-at-ms", "1");
  expect(reKey(state, 2)).toEqual({ ok: true, value: "SHA256:old" });
  expect([state.claim.get(), isReKeyed(state), state.claim.isRevoked("CN=x", "0a")]).toEqual([undefined, true, true]);
  expect(state.meta.get("in-service-at-ms")).toBe("1");
  expect(state.events.last(1)).toMatchObject([{ kind: "re-keyed", severity: "warning" }]);
  expect(state.audit.last(1)).toMatchObject([{ requester: { kind: "console" }, route: "rescue re-key" }]);
});
