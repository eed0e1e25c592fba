import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { parseDocument } from "../../config/load.ts";
import { installArgv } from "../../k0s/argv.ts";
import type { RecordedAddresses } from "../../kit/addresses.ts";
import { renderNode } from "../../provision/render.ts";
import type { Baseline } from "../../state/model.ts";
import type { State } from "../../state/open.ts";
import { gateService, removeServices } from "../../test/support/gate-service.ts";
import { RENDER_VERSION } from "../render-version.ts";
import { serveApply } from "../service/driver.ts";
import type { ApplyDependencies } from "../service/model.ts";
import { adoptBaseline, type AdoptOutcome } from "./driver.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);
afterEach(removeServices);

const requester = { kind: "local" } as const;
const CONFIG = "/etc/k0s/k0s.yaml";
const PLAIN = "role: single\nnode: {name: n1, labels: {rack: a}}\n";
const HA = `role: controller
cluster: { name: shop, endpoint: 192.0.2.9 }
node: { name: n1 }
ha: { enabled: true, virtualIP: 192.0.2.9/24, interface: eno1, authPass: s3cret-1, unicastPeers: [192.0.2.3] }
`;

interface Lost {
  readonly fake: ReturnType<typeof gateService>["fake"];
  readonly dependencies: ApplyDependencies;
  readonly state: State;
  readonly adopt: (document: string, isDryRun?: boolean) => Promise<AdoptOutcome>;
}

/** A node that runs this document, in whose database the row that says so is gone. */
function lost(text: string, addresses: RecordedAddresses = {}): Lost {
  const one = gateService(text);
  const { fake } = one;
  const { document } = parseDocument(text, { nowMs: 0 });
  if (document === undefined) throw new Error("not valid");
  for (const { path, content, mode } of renderNode({ document, hostname: "n1", machineId: "m", addresses }).files) {
    fake.put(path, content.replace("<secret:ha.authPass>", "s3cret-1"), { mode });
  }
  const argv = (installArgv(document, addresses) ?? []).slice(1).map((each) => each.replaceAll(" ", "\\x20"));
  fake.put("/etc/systemd/system/k0scontroller.service", `[Service]\nExecStart=/usr/bin/k0s ${argv.join(" ")}\n`);
  fake.put("/proc/sys/kernel/hostname", "n1\n");
  fake.put("/etc/machine-id", "m\n");
  fake.drop("/etc/corium/config.yaml");
  let row: Baseline | undefined;
  const baseline = { get: () => row, set: (next: Baseline) => void (row = next) };
  const state: State = { ...one.state(), baseline };
  const dependencies = { ...one.dependencies, state };
  return {
    fake,
    dependencies,
    state,
    adopt: (given, isDryRun = false) => adoptBaseline(dependencies, { document: given, isDryRun, requester }),
  };
}

const writes = ({ fake }: Lost): readonly string[] =>
  fake.calls.filter((call) => /^files\.(write|remove|rename)|^systemd\.(re)?st/.test(call));

test("the document that it runs becomes the record again: one operation, source 1, and nothing restarts", async () => {
  const one = lost(PLAIN);
  expect(await one.adopt(PLAIN, true)).toMatchObject({ answer: { status: "planned" } });
  expect([writes(one), one.state.operations.list(), one.state.baseline.get()]).toEqual([[], [], undefined]);
  expect(await one.adopt(PLAIN)).toMatchObject({ answer: { status: "adopted", operation: expect.any(String) } });
  expect(writes(one)).toEqual(["files.write /etc/corium/config.yaml"]);
  expect(one.state.operations.list()).toMatchObject([{ kind: "baseline-adopt", phase: "succeeded", requester }]);
  const baseline = one.state.baseline.get();
  expect(baseline).toMatchObject({ hostname: "n1", machineId: "m", renderVersion: RENDER_VERSION, addresses: {} });
  expect(baseline?.document.text).toBe(PLAIN);
  expect(Object.keys(baseline?.rendered ?? {})).toContain(CONFIG);
  // From here on it is a node as any other.
  const apply = { document: PLAIN, acknowledge: false, isDryRun: false, requester };
  expect(await serveApply(one.dependencies, apply)).toMatchObject({ answer: { status: "unchanged" } });
});

test("an operator adopted a document that turns the API off, and the API that was asked was closed by the next restart", async () => {
  const one = lost(PLAIN);
  const operator = { kind: "operator", name: "ann", role: "admin", fingerprint: "f", address: "192.0.2.7" } as const;
  const asked = (isDryRun: boolean, document = `${PLAIN}api: { enabled: false }\n`) =>
    adoptBaseline(one.dependencies, { document, isDryRun, requester: operator });
  for (const isDryRun of [true, false])
    expect(await asked(isDryRun)).toMatchObject({ kind: "refused", status: 409, body: { reason: "closes-api" } });
  expect([writes(one), one.state.baseline.get()]).toEqual([[], undefined]);
  expect(await asked(false, PLAIN)).toMatchObject({ answer: { status: "adopted" } });
});

test("the addresses that it entered service with are read from its files", async () => {
  const addresses = {
    apiAddress: "192.0.2.2",
    peerAddress: "192.0.2.2",
    nodeIp: "192.0.2.2",
    unicastSourceIp: "192.0.2.2",
  };
  const one = lost(HA, addresses);
  expect(await one.adopt(HA)).toMatchObject({ answer: { status: "adopted" } });
  expect(one.state.baseline.get()?.addresses).toEqual(addresses);
  expect(Object.keys(one.state.baseline.get()?.secretFingerprints ?? {})).toEqual(["ha.authPass"]);
});

describe("refused, and nothing is recorded", () => {
  async function refusal(one: Lost, document: string) {
    const outcome = await one.adopt(document);
    expect([writes(one), one.state.operations.list(), one.state.baseline.get()]).toEqual([[], [], undefined]);
    if (outcome.kind !== "refused") throw new Error("taken");
    return outcome;
  }

  test("another document: what differs is named, each at once, with its diff", async () => {
    const { status, body } = await refusal(lost(PLAIN), "role: single\nnode: {name: n1}\ncluster: {name: other}\n");
    expect([status, body.reason]).toEqual([409, "differs"]);
    expect(body.differences?.map(({ path }) => path)).toEqual([CONFIG, "/etc/systemd/system/k0scontroller.service"]);
    expect(body.differences?.[0]?.diff).toContain('-  name: "other"');
    expect(body.error).toContain(CONFIG);
  });

  test("a file that somebody changed by hand, or that is gone", async () => {
    const one = lost(PLAIN);
    one.fake.put("/etc/hosts", "mine\n");
    one.fake.drop(CONFIG);
    const { body } = await refusal(one, PLAIN);
    expect(body.differences?.map(({ code, path }) => [code, path])).toEqual([
      ["file-changed", "/etc/hosts"],
      ["file-missing", CONFIG],
    ]);
  });

  test("another password: neither of the two is told", async () => {
    const { body } = await refusal(lost(HA, { unicastSourceIp: "192.0.2.2" }), HA.replace("s3cret-1", "s3cret-2"));
    expect(body.differences?.map(({ path }) => path)).toContain(CONFIG);
    expect(JSON.stringify(body)).not.toMatch(/s3cret-\d/);
  });

  test("no role, and no document", async () => {
    expect(await refusal(lost(PLAIN), "node: {name: n1}\n")).toMatchObject({ status: 409 });
    const { status, body } = await refusal(lost(PLAIN), `${PLAIN}rolle: worker\n`);
    expect([status, body.problems?.[0]?.message]).toEqual([400, expect.stringContaining("rolle")]);
  });

  test("a k0s that can't be asked for its version", async () => {
    const one = lost(PLAIN);
    one.fake.programs.delete("k0s");
    expect((await refusal(one, PLAIN)).status).toBe(503);
  });
});

test("a call that fails, any of them: recorded whole or not at all, and it can be asked for again", async () => {
  let isOver = false;
  for (let call = 1; !isOver; call += 1) {
    const one = lost(PLAIN);
    one.fake.failAt(call);
    const outcome = await one.adopt(PLAIN);
    isOver = outcome.kind === "answer";
    expect(one.state.operations.running()).toBeUndefined();
    expect(one.state.baseline.get() === undefined).toBe(!isOver);
    expect((await one.adopt(PLAIN)).kind).toBe("answer");
  }
});
