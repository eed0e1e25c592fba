import { afterEach, describe, expect, test } from "bun:test";
import { type FakeK0s, fakeK0s } from "../test/support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../test/support/gate-service.ts";
import { watchHandover } from "./cni-handover.ts";

const AUTOMATIC = `role: single
node: {name: n1}
network: {cni: custom, handover: {mode: automatic, stack: cni, application: {name: cni, namespace: argocd}}}
manifests: [{name: cni, files: [{name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}]}]
`;
afterEach(removeServices);

const argo = (k0s: FakeK0s): void => {
  const status = { sync: { status: "Synced" }, health: { status: "Healthy" } };
  k0s.objects.set("applications.argoproj.io argocd/cni", {
    metadata: { name: "cni" },
    spec: { syncPolicy: { automated: {} } },
    status,
  });
};

/** When each question was asked, in seconds from the first; `atLook` is called before it is answered. */
async function watched(
  one: GateService,
  seconds: number,
  atLook: (count: number) => void | Promise<void> = () => undefined,
): Promise<readonly number[]> {
  const { fake } = one;
  const asked: number[] = [];
  const program = fake.programs.get("k0s");
  if (program === undefined) throw new Error("no k0s");
  fake.programs.set("k0s", async (request, host) => {
    if (request.argv.includes("applications.argoproj.io")) {
      asked.push(fake.clock.monotonicMs());
      await atLook(asked.length);
    }
    return program(request, host);
  });
  const signal = new AbortController();
  const until = fake.clock.monotonicMs() + seconds * 1000;
  const sleep: typeof fake.clock.sleep = async (ms, stop) => {
    await fake.clock.sleep(ms, stop);
    if (fake.clock.monotonicMs() >= until) signal.abort();
  };
  const host = { ...fake, clock: { ...fake.clock, sleep } };
  await watchHandover({ ...one.dependencies, host, say: (line) => expect(line).toBe("") }, signal.signal);
  return asked.map((atMs) => (atMs - (asked[0] ?? 0)) / 1000);
}

const phases = (one: GateService) =>
  one
    .state()
    .operations.list()
    .map(({ kind, phase }) => `${kind} ${phase}`);

test("it looks every 30 s for as long as there is no Argo CD, and that is no error", async () => {
  const one = gateService(AUTOMATIC, fakeK0s({ slowness: 0 }));
  expect(await watched(one, 120)).toEqual([0, 30, 60, 90]);
  expect(one.state().handover.condition()).toMatchObject({ status: "False", reason: "WaitingForArgoCD" });
  expect([phases(one), one.state().events.last().length]).toEqual([[], 1]);
});

test("Synced and Healthy: handed over by an operation that the document asked for, and then it looks no more", async () => {
  const k0s = fakeK0s({ slowness: 0 });
  const one = gateService(AUTOMATIC, k0s);
  const asked = await watched(one, 300, (count) => {
    if (count === 3) argo(k0s);
  });
  expect(asked).toEqual([0, 30, 60]);
  expect(one.state().operations.list()).toMatchObject([
    { kind: "handover", phase: "succeeded", requester: { kind: "document" } },
  ]);
  expect(one.fake.text("/var/lib/k0s/manifests/cni/a.yaml")).toBeUndefined();
  expect(one.state().handover.condition()?.reason).toBe("HandedOver");
});

test("one of several controllers hands nothing over by itself: pending, with the command", async () => {
  const k0s = fakeK0s({ slowness: 0 });
  k0s.controlPlane = { members: ["n1", "n2"], leader: "n1" };
  argo(k0s);
  const one = gateService(`${AUTOMATIC.replace("single", "controller")}cluster: {endpoint: api.example.com}\n`, k0s);
  await watched(one, 90);
  expect([phases(one), one.state().handover.condition()?.status]).toEqual([[], "True"]);
});

test("a cluster that answers slowly is asked once at a time and for 20 s at most, and delays nobody else", async () => {
  const one = gateService(AUTOMATIC, fakeK0s({ slowness: 0 }));
  const answered = Promise.withResolvers<void>();
  let open = 0;
  const watching = watched(one, 600, async () => {
    open += 1;
    await answered.promise;
    open -= 1;
  });
  const limits: (number | undefined)[] = [];
  const program = one.fake.programs.get("k0s");
  one.fake.programs.set("k0s", async (request, fake) => {
    limits.push(request.timeoutMs);
    return (await program?.(request, fake)) ?? "";
  });
  await one.fake.clock.sleep(300_000);
  expect(open).toBe(1);
  // Meanwhile the node takes an operation of somebody else.
  const begun = one.state().operations.begin({ kind: "drain", requester: { kind: "local" }, version: "1", atMs: 1 });
  expect(begun.ok).toBe(true);
  answered.resolve();
  expect((await watching).length).toBeGreaterThan(1);
  expect(new Set(limits)).toEqual(new Set([20_000]));
});

test("the daemon ends at once, also while the cluster owes an answer", async () => {
  const one = gateService(AUTOMATIC, fakeK0s({ slowness: 0 }));
  const asked = Promise.withResolvers<void>();
  const never = Promise.withResolvers<string>();
  one.fake.programs.set("k0s", () => {
    asked.resolve();
    return never.promise;
  });
  const signal = new AbortController();
  const watching = watchHandover({ ...one.dependencies, say: () => undefined }, signal.signal);
  await asked.promise;
  signal.abort();
  await watching;
  expect(one.state().operations.list()).toEqual([]);
});

describe("another operation runs, or one has failed", () => {
  test("a running one is waited for, look after look", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    argo(k0s);
    const one = gateService(AUTOMATIC, k0s);
    const begun = one.state().operations.begin({ kind: "drain", requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!begun.ok) throw new Error("busy");
    await watched(one, 200, (count) => {
      if (count === 3) one.state().operations.end(begun.value.id, { phase: "succeeded" }, 2);
    });
    expect(phases(one)).toEqual(["handover succeeded", "drain succeeded"]);
  });

  test("a hand-over that failed stops k0s once, not at each look", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    argo(k0s);
    const one = gateService(AUTOMATIC, k0s);
    const unit = one.fake.unitTable.get("k0scontroller.service");
    if (unit === undefined) throw new Error("no unit");
    unit.onStop = () => Object.assign(unit, { activeState: "deactivating", mainPid: 9 });
    expect(await watched(one, 300)).toEqual([0]);
    expect(phases(one)).toEqual(["handover failed"]);
    expect(one.state().handover.condition()?.message).toContain("`cctl handover` tries again");
  });
});
