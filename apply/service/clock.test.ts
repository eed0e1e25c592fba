/** The clock jumps, by years: what runs goes on running, and what is asked of the rest is answered. */
import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { realRandom } from "../../host/random.ts";
import { mintAuthority } from "../../pki/driver.ts";
import { MachineDied } from "../../test/support/fake-host.ts";
import { fakeK0s } from "../../test/support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../../test/support/gate-service.ts";
import { recoverApplies } from "../recovery/driver.ts";
import { serveApply } from "./driver.ts";
import type { ServiceOutcome, ServiceRequest } from "./model.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(60_000);
afterEach(removeServices);

const YEAR_MS = 365 * 86_400_000;
/** That of the machine in memory. */
const NOW = Date.UTC(2026, 0, 1);
const requester = { kind: "local" } as const;
const withCa = (pem: string, more = ""): string =>
  `role: single\nnode: {name: n1}\napi:\n  enabled: true\n  operatorCA: |\n    ${pem.trim().replaceAll("\n", "\n    ")}\n${more}`;
const found = (severity: "error" | "warning") =>
  expect.arrayContaining([expect.objectContaining({ severity, code: "expired", path: "api.operatorCA" })]);
const BACKUP = "backup: {enabled: true, keep: 3}\n";
const post = (one: GateService, document: string, more: Partial<ServiceRequest> = {}): Promise<ServiceOutcome> =>
  serveApply(one.dependencies, { document, requester, acknowledge: false, isDryRun: false, ...more });

let first: string;
let other: string;
beforeAll(async () => {
  const mint = async (commonName: string): Promise<string> =>
    (await mintAuthority({ commonName, nowMs: NOW, random: realRandom })).certificate;
  [first, other] = await Promise.all([mint("first"), mint("other")]);
});

describe("the operator CA of the document has ended, or has not begun", () => {
  test.each([11, -5])("%p years from now: every apply was refused for a field that nobody changed", async (years) => {
    const one = gateService(withCa(first));
    one.fake.setNow(NOW + years * YEAR_MS);
    const outcome = await post(one, withCa(first, BACKUP));
    expect(outcome).toMatchObject({
      answer: { status: "reconciled", warnings: found("warning") },
    });
    // And what was recorded meanwhile can be compared with.
    expect(await post(one, withCa(first, BACKUP))).toMatchObject({ answer: { status: "unchanged" } });
    expect(await post(one, withCa(first, BACKUP.replace("3", "4")))).toMatchObject({
      answer: { status: "reconciled" },
    });
  });

  test("a new one that has ended is refused", async () => {
    const one = gateService(withCa(first));
    one.fake.setNow(NOW + 11 * YEAR_MS);
    expect(await post(one, withCa(other, BACKUP), { confirmWithinMs: 60_000 })).toMatchObject({
      status: 400,
      body: { reason: "invalid-document", problems: found("error") },
    });
    expect(one.state().operations.list()).toEqual([]);
  });

  test("what else is wrong is an error beside it", async () => {
    const one = gateService(withCa(first));
    one.fake.setNow(NOW + 11 * YEAR_MS);
    const outcome = await post(one, withCa(first, "backup: {enabled: true, keep: -1}\n"));
    expect(outcome).toMatchObject({
      status: 400,
      body: { problems: expect.arrayContaining([expect.objectContaining({ path: "backup.keep" })]) },
    });
  });
});

test("the clock went back: an apply that was recorded and cut off was said to have changed nothing", async () => {
  const one = gateService("role: single\nnode: {name: n1}\n", fakeK0s({ slowness: 0 }));
  const document = (keep: number): string => `role: single\nnode: {name: n1}\nbackup: {enabled: true, keep: ${keep}}\n`;
  for (const keep of [1, 2, 3, 4])
    expect(await post(one, document(keep))).toMatchObject({ answer: { status: "reconciled" } });
  one.fake.setNow(NOW - 3 * YEAR_MS);
  const { state } = one.dependencies;
  const step: typeof state.operations.step = (id, shown, atMs) => {
    if (shown.id === "apply:record" && shown.state === "done") throw new MachineDied("it was recorded");
    state.operations.step(id, shown, atMs);
  };
  const dying = { ...one.dependencies, state: { ...state, operations: { ...state.operations, step } } };
  const request = { document: document(5), requester, acknowledge: false, isDryRun: false };
  await expect(serveApply(dying, request)).rejects.toThrow(MachineDied);
  const again = one.reopen();
  const [operation] = again.state.operations.list();
  expect((await recoverApplies(again)).ok).toBe(true);
  expect(again.state.operations.get(operation?.id ?? "")).toMatchObject({ phase: "succeeded" });
  expect(one.fake.text("/etc/corium/config.yaml")).toBe(document(5));
  expect(one.fake.paths("/var/lib/corium/undo/").some((path) => path.includes(operation?.id ?? ""))).toBe(true);
});

test("the clock went back: what somebody edited by hand was dropped as the oldest copy, right after it was promised", async () => {
  const one = gateService("role: single\nnode: {name: n1}\n", fakeK0s({ slowness: 0 }));
  for (let count = 0; count < 25; count += 1)
    one.fake.put(`/var/lib/corium/by-hand/old.${count}`, "old", { mode: 0o600 });
  one.fake.setNow(NOW - 3 * YEAR_MS);
  const source = "/etc/corium/config.yaml";
  one.fake.put(source, "# mine\n", { mode: 0o600 });
  const outcome = await post(one, `role: single\nnode: {name: n1}\n${BACKUP}`);
  expect(outcome).toMatchObject({ answer: { status: "reconciled" } });
  const promised = outcome.kind === "answer" ? outcome.answer.consequences.join("\n") : "";
  const [copy = "none"] = /\/var\/lib\/corium\/by-hand\/\S+/.exec(promised) ?? [];
  expect(one.fake.text(copy)).toBe("# mine\n");
});
