import { describe, expect, test } from "bun:test";

import { realRandom } from "../host/random.ts";
import { nodePaths } from "../kit/paths.ts";
import { ok } from "../kit/result.ts";
import { mintAuthority } from "../pki/driver.ts";
import type { Baseline, OperationKind } from "../state/model.ts";
import type { State } from "../state/open.ts";
import { memoryState } from "../state/open.ts";
import type { FakeHost, FakeHostOptions } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { closeAbandoned } from "./abandoned.ts";
import { bootstrapControl } from "./bootstrap-control.ts";
import { findOwnDocument, readApiMode } from "./own-document.ts";
import type { Collectors, StatusInput } from "./status.ts";
import { createStatus } from "./status.ts";
import { sha256Of } from "../kit/sha256.ts";

const paths = nodePaths();
const K0S_YAML = "/etc/k0s/k0s.yaml";
const VERSION = "v1.34.1+k0s.0";

function inService(state: State, text = "role: single\n"): Baseline {
  const document = state.documents.add({ text, atMs: 1, requester: { kind: "document" }, origin: "apply" });
  const baseline: Baseline = {
    document,
    hostname: "n1",
    machineId: "m1",
    addresses: {},
    k0sVersion: VERSION,
    inputHash: "h",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: { [K0S_YAML]: sha256Of("k0s\n") },
    atMs: 1,
  };
  state.baseline.set(baseline);
  state.meta.set("in-service-at-ms", "1");
  return baseline;
}

const machine = (more: FakeHostOptions = {}): FakeHost =>
  fakeHost({
    ...more,
    files: {
      "/proc/sys/kernel/hostname": "n1\n",
      "/proc/sys/kernel/osrelease": "6.12.48\n",
      "/etc/machine-id": "m1\n",
      "/etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n',
      "/etc/corium/config.yaml": "role: single\n",
      [K0S_YAML]: "k0s\n",
      ...more.files,
    },
    programs: { k0s: () => `${VERSION}\n`, ...more.programs },
    units: {
      "k0scontroller.service": { activeState: "active", isEnabled: true },
      "corium-bootstrap.service": {},
      ...more.units,
    },
  });

const nothing: Collectors = {
  arrays: async () => [],
  mounts: async () => [],
  volumes: async () => [],
  overlay: async () => [],
  ha: async () => undefined,
  addresses: async () => [],
  readiness: async () => ({ isReady: true }),
  hardware: async () => ({ cores: 2 }),
};

function status(state: State, more: Partial<StatusInput> = {}) {
  const host = more.host ?? machine();
  return createStatus({
    host,
    paths,
    state,
    version: "1.2.3",
    bootstrap: bootstrapControl(host, paths),
    collectors: nothing,
    ...more,
  });
}

describe("status", () => {
  test("of a fresh machine: maintenance, and nothing that is not known", async () => {
    const node = await status(memoryState(), { boot: { mode: "live" } }).node();
    expect(node).toMatchObject({ phase: "maintenance", bootstrapped: false, config: { state: "unconfigured" } });
    for (const key of ["role", "cluster", "ha", "operation"]) expect(node).not.toHaveProperty(key);
    expect(node.management).toEqual({});
    expect((await status(memoryState()).health()).status).toBe("maintenance");
  });

  test("who may have an older answer shares one look with the others; nobody else gets an old one", async () => {
    let looks = 0;
    const host = machine();
    const hardware = async (): Promise<{ readonly cores: number }> => ({ cores: (looks += 1) });
    const shared = status(memoryState(), { host, collectors: { ...nothing, hardware } });
    const node = (maxAgeMs?: number) => shared.node(maxAgeMs);
    expect((await node(3_000)).machine?.cores).toBe(1);
    expect((await node(3_000)).machine?.cores).toBe(1);
    expect((await node()).machine?.cores).toBe(2);
    await host.clock.sleep(3_000);
    expect((await node(3_000)).machine?.cores).toBe(3);
  });

  test("of a node in service", async () => {
    const state = memoryState();
    inService(state, "role: single\ncluster: {name: shop}\n");
    const host = machine({ files: { "/etc/corium/config.yaml": "role: single\ncluster: {name: shop}\n" } });
    const boot = { mode: "disk", slot: "A", rootHash: "abc" } as const;
    const node = await status(state, { host, boot }).node();
    expect(node).toMatchObject({
      hostname: "n1",
      phase: "in-service",
      role: "single",
      cluster: "shop",
      os: {
        name: "Debian GNU/Linux 13 (trixie)",
        kernel: "6.12.48",
        booted: { slot: "A", version: "1.2.3", digest: "abc" },
      },
      kubernetes: { version: VERSION, service: "k0scontroller.service", active: true, nodeReady: true },
      health: { verdict: "healthy" },
      config: { state: "in-sync", reasons: [] },
    });
    expect(node.kubernetes).not.toHaveProperty("standIn");
  });

  test("the stand-in for Kubernetes never passes for the real one", async () => {
    const state = memoryState();
    inService(state);
    const node = await status(state, { host: machine({ programs: { k0s: () => `${VERSION}-sim\n` } }) }).node();
    expect(node.kubernetes?.standIn).toBe(true);
  });

  test("a lost database, a stopped k0s, a degraded array and a missing mount are told, worst first", async () => {
    const state = memoryState();
    inService(state);
    const array = { name: "data", level: "raid1", state: "degraded", active: 1, expected: 2 };
    const mount = { path: "/var/lib/k0s", source: "", filesystem: "", mounted: false };
    const collectors: Collectors = { ...nothing, arrays: async () => [array], mounts: async () => [mount] };
    const degraded = await status(state, { collectors }).node();
    expect(degraded.health.verdict).toBe("degraded");
    expect(degraded.health.checks.filter((check) => !check.ok).map(({ name }) => name)).toEqual([
      "array data",
      "mount /var/lib/k0s",
    ]);
    const stopped = machine({ units: { "k0scontroller.service": { activeState: "failed" } } });
    expect((await status(state, { host: stopped }).node()).health.verdict).toBe("unhealthy");
    const lost = status(memoryState(), { stateProblem: { code: "state-lost", message: "the database is not there" } });
    expect(await lost.node()).toMatchObject({ phase: "degraded", health: { verdict: "unhealthy" } });
    expect((await lost.health()).status).toBe("degraded");
  });

  test("a locked volume and one whose disk is gone are named with what to do; the node is degraded, not lost", async () => {
    const state = memoryState();
    inService(state);
    const volumes = [
      { name: "vault", unlock: "tpm2", state: "locked", hasRecoveryKey: true },
      { name: "attic", unlock: "passphrase", state: "missing" },
      { name: "cellar", unlock: "tpm2", state: "open", hasRecoveryKey: false },
    ] as const;
    const { health, storage } = await status(state, {
      collectors: { ...nothing, volumes: async () => volumes },
    }).node();
    expect(storage.volumes).toEqual(volumes);
    expect(health.verdict).toBe("degraded");
    expect(health.checks.filter(({ ok: isOk }) => !isOk)).toEqual([
      { name: "volume vault", ok: false, message: "locked; `cctl luks unlock NODE vault` opens it" },
      { name: "volume attic", ok: false, message: "the device that it lies on is missing" },
    ]);
    expect((await status(state).node()).storage).not.toHaveProperty("volumes");
  });

  test("a reset that failed in the middle is told, for it is what keeps k0s from starting; one under way is not", async () => {
    const state = memoryState();
    inService(state, "role: single\n");
    const host = machine({ files: { [paths.resetErasing]: "" } });
    const messages = async () => {
      const { health } = await status(state, { host }).node();
      return [health.verdict === "healthy", health.checks.map(({ message }) => message).join("\n")] as const;
    };
    expect(await messages()).toEqual([false, expect.stringContaining("a reset has begun to erase this node")]);
    state.operations.begin({ kind: "reset", requester: { kind: "local" }, version: "1", atMs: 1 });
    expect((await messages())[1]).not.toContain("a reset has begun");
  });

  test("B172: a recorded document that can't be read any more is told, and what runs is not touched", async () => {
    for (const text of ["role: single\nnode: {name: [", "role: single\nfromTheFuture: true\n"]) {
      const state = memoryState();
      inService(state, text);
      const host = machine();
      const { phase, health, kubernetes } = await status(state, { host }).node();
      expect(phase).toBe("degraded");
      expect(health.checks.find(({ name }) => name === "state")?.message).toContain(
        "the recorded document can't be read",
      );
      expect(kubernetes?.active).toBe(true);
      expect((await status(state, { host }).health()).status).toBe("degraded");
      expect(host.calls.filter((call) => /write|restart|stop|start/.test(call))).toEqual([]);
    }
  });

  test("status called k0s not active, because k0s had not answered in time", async () => {
    const state = memoryState();
    inService(state);
    const collectors: Collectors = { ...nothing, readiness: () => Promise.reject(new Error("too late")) };
    const programs = { k0s: () => ({ exitCode: null, timedOut: true }) };
    const node = await status(state, { host: machine({ programs }), collectors }).node();
    expect(node.kubernetes).toEqual({ version: VERSION, service: "k0scontroller.service", active: true });
    expect(node.health.verdict).toBe("healthy");
  });

  test("a node was called ready whose network Kubernetes still waited for: k0s merely reached the API server", async () => {
    const state = memoryState();
    inService(state);
    const as = async (readiness: Awaited<ReturnType<Collectors["readiness"]>>) => {
      const { kubernetes, health } = await status(state, {
        collectors: { ...nothing, readiness: async () => readiness },
      }).node();
      const said = health.checks.find(({ name }) => name === "node")?.message;
      return [kubernetes?.nodeReady, kubernetes?.nodeMessage, health.verdict, said];
    };
    const why = "cni plugin not initialized";
    expect(await as({ isReady: false, why })).toEqual([false, why, "degraded", `Kubernetes says not ready: ${why}`]);
    const unknown = "whether it is ready is not known: no answer";
    expect(await as({ why: "no answer" })).toEqual([undefined, "no answer", "degraded", unknown]);
    expect(await as({ isReady: true })).toEqual([true, undefined, "healthy", undefined]);
  });

  test("a report that fails is left out and hides no other", async () => {
    const collectors: Collectors = { ...nothing, overlay: () => Promise.reject(new Error("wg is gone")) };
    const node = await status(memoryState(), { collectors }).node();
    expect(node).toMatchObject({ overlay: [], machine: { cores: 2 } });
  });

  test("arrays that could not be read in time are not called healthy", async () => {
    const state = memoryState();
    inService(state);
    const collectors: Collectors = { ...nothing, arrays: () => Promise.reject(new Error("mdadm hangs")) };
    const { health } = await status(state, { collectors }).node();
    expect(health.verdict).toBe("degraded");
    expect(health.checks).toContainEqual({ name: "arrays", ok: false, message: "could not be read" });
  });

  test("those who ask while one looks share the next look: nobody is told what was before the question", async () => {
    let looks = 0;
    let disk = "old";
    const slow = Promise.withResolvers<undefined>();
    const arrays: Collectors["arrays"] = async () => {
      looks += 1;
      const name = disk;
      if (looks === 1) await slow.promise;
      return [{ name, level: "raid1", state: "healthy", active: 2, expected: 2, members: [] }];
    };
    const one = status(memoryState(), { collectors: { ...nothing, arrays } });
    const first = one.node();
    await Bun.sleep(1);
    // `cctl disk replace` has ended, and its status is asked for while another look is under way.
    disk = "new";
    const [second, third] = [one.node(), one.node()];
    slow.resolve(undefined);
    const named = await Promise.all([first, second, third].map(async (asked) => (await asked).storage.arrays[0]?.name));
    expect(named).toEqual(["old", "new", "new"]);
    expect(looks).toBe(2);
    await one.node();
    expect(looks).toBe(3);
  });

  test("what it is doing right now", async () => {
    const state = memoryState();
    const begun = state.operations.begin({ kind: "bootstrap", requester: { kind: "document" }, version: "1", atMs: 1 });
    if (!begun.ok) throw new Error("busy");
    state.operations.step(begun.value.id, { id: "a", title: "create the array", state: "running" }, 2);
    state.operations.message(begun.value.id, "waiting for /dev/md/data", 3);
    expect((await status(state).node()).operation).toEqual({
      id: begun.value.id,
      kind: "bootstrap",
      step: "create the array",
      message: "waiting for /dev/md/data",
    });
  });
});

test("B188: certificates that have ended make a node in service degraded, and say who renews them", async () => {
  const authority = await mintAuthority({ commonName: "ca", nowMs: Date.UTC(2014, 0, 1), random: realRandom });
  const state = memoryState();
  inService(state);
  const host = machine({ files: { "/var/lib/k0s/pki/ca.crt": authority.certificate } });
  const { health, certificates } = await status(state, { host }).node();
  expect(health.verdict).toBe("degraded");
  expect(health.checks.find(({ name }) => name === "certificates")?.message).toStartWith("k0s ca: ended on 2024-01-01");
  expect(certificates).toMatchObject([{ name: "k0s ca", path: "/var/lib/k0s/pki/ca.crt", daysLeft: -731 }]);
});

test("B086: a node that its cluster does not know any more is degraded, with the way back", async () => {
  const state = memoryState();
  inService(state);
  const lost = () => ({ is: "deleted", sinceMs: 0, cure: "restart it" }) as const;
  const { health } = await status(state, { lost }).node();
  expect(health.verdict).toBe("degraded");
  expect(health.checks.find(({ name }) => name === "cluster")?.message).toBe(
    "the cluster does not know this node any more: its Node object was deleted (since 1970-01-01T00:00:00.000Z); restart it",
  );
});

describe("bootstrap as the API sees it", () => {
  const control = (more: FakeHostOptions = {}) => {
    const host = machine(more);
    return { host, control: bootstrapControl(host, paths) };
  };
  const status_ = (state: string): Record<string, string> => ({
    "/run/corium/bootstrap.json": JSON.stringify({ state, kind: "bootstrap" }),
  });
  const activating = { "corium-bootstrap.service": { activeState: "activating" } };

  test("one that began and said nothing yet may not be disturbed; one that died while it ran has failed", async () => {
    expect(await control().control.state()).toBe("idle");
    expect(await control({ units: activating }).control.state()).toBe("running");
    expect(await control({ units: activating, files: status_("waiting") }).control.state()).toBe("waiting");
    expect(await control({ files: status_("running") }).control.state()).toBe("failed");
    expect(await control({ files: status_("done") }).control.state()).toBe("done");
  });

  test("a document that comes with the claim code just shown is not refused: a bootstrap that began is heard out", async () => {
    const { host, control: begun } = control({ units: activating });
    const sleep = async (ms: number): Promise<void> => {
      await host.clock.sleep(ms);
      if (host.clock.monotonicMs() > 5_000) host.put("/run/corium/bootstrap.json", status_("waiting")[path] ?? "");
    };
    const path = "/run/corium/bootstrap.json";
    const patient = bootstrapControl({ ...host, clock: { ...host.clock, sleep } }, paths);
    expect(await patient.settled()).toBe("waiting");
    host.drop(path);
    // Silent for good: it may be at work.
    expect(await begun.settled()).toBe("running");
  });

  test("it is started again unless it runs", async () => {
    const active = control({ units: { "corium-bootstrap.service": { activeState: "active" } } });
    await active.control.poke();
    expect(active.host.calls.filter((call) => /stop|start /.test(call))).toEqual([
      "systemd.stop corium-bootstrap.service",
      "systemd.start corium-bootstrap.service",
    ]);
    const running = control({ units: activating });
    await running.control.poke();
    expect(running.host.calls.filter((call) => /stop|start /.test(call))).toEqual([]);
  });

  test("the word of the one before is not the new one's: no document is taken that it may have read past", async () => {
    const host = machine({
      units: { "corium-bootstrap.service": { activeState: "failed" } },
      files: status_("failed"),
    });
    const start = async () => {
      const unit = host.unitTable.get("corium-bootstrap.service");
      if (unit !== undefined) unit.activeState = "activating";
      return ok(undefined);
    };
    const failed = bootstrapControl({ ...host, systemd: { ...host.systemd, start } }, paths);
    expect(await failed.state()).toBe("failed");
    await failed.poke();
    expect(await failed.state()).toBe("running");
  });

  test.each(["idle", "failed"])(
    "one that looked just before the answer came, and ended %s, is started again",
    async (end) => {
      const { host, control: late } = control({ units: activating, files: status_(end) });
      await late.poke();
      expect(host.calls.filter((call) => call.startsWith("systemd.start"))).toEqual([]);
      const unit = host.unitTable.get("corium-bootstrap.service");
      if (unit !== undefined) unit.activeState = "active";
      await Bun.sleep(10);
      expect(host.calls.filter((call) => call.startsWith("systemd.start"))).toHaveLength(1);
    },
  );
});

describe("what the node's own document says of the API", () => {
  const mode = async (text: string | undefined) => {
    const host = fakeHost(text === undefined ? {} : { files: { "/etc/corium/config.yaml": text } });
    return readApiMode(host, await findOwnDocument({ host, paths, state: memoryState() }), { isClaimed: false });
  };

  test("the document of this machine is the answer at once, while a stick that would not count is still being read", async () => {
    const host = fakeHost({ files: { "/etc/corium/config.yaml": "role: single\napi: {enabled: false}\n" } });
    const readSeeds = () => new Promise<never>(() => undefined);
    const own = await findOwnDocument({ host, paths, state: memoryState(), readSeeds });
    expect(own).toMatchObject({ kind: "found", origin: "/etc/corium/config.yaml" });
  });

  test("nothing, off, insecure, an invalid document", async () => {
    expect(await mode(undefined)).toEqual({ isEnabled: true, isInsecure: false });
    expect(await mode("role: single\napi: {enabled: false}\n")).toMatchObject({ isEnabled: false });
    expect(await mode("role: single\napi: {enabled: true, insecure: true}\n")).toMatchObject({ isInsecure: true });
    expect(await mode("role: king\napi: {enabled: false}\n")).toEqual({ isEnabled: true, isInsecure: false });
  });

  test("a CA that can't be had is a problem, not an open door", async () => {
    const answer = await mode("role: single\napi: {enabled: true, operatorCAFrom: {file: /etc/corium/ca.pem}}\n");
    expect(answer).toMatchObject({ isInsecure: false, problem: { code: "secret" } });
  });
});

test("what a dead process left running is closed, but bootstrap and a reset go on by themselves", () => {
  const abandoned = (kind: OperationKind, isInService: boolean, isResetting = false): string => {
    const state = memoryState();
    if (isInService) state.meta.set("in-service-at-ms", "1");
    const begun = state.operations.begin({ kind, requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!begun.ok) throw new Error("busy");
    const dead: State = { ...state, operations: { ...state.operations, abandoned: () => state.operations.list() } };
    closeAbandoned(dead, 2, { isResetting });
    return state.operations.get(begun.value.id)?.phase ?? "";
  };
  expect(abandoned("apply", true)).toBe("failed");
  expect(abandoned("reboot", true)).toBe("succeeded");
  expect(abandoned("bootstrap", false)).toBe("running");
  expect(abandoned("bootstrap", true)).toBe("succeeded");
  // Without its intent nobody goes on with it, and it would be in the way of everything for ever.
  expect(abandoned("reset", true, true)).toBe("running");
  expect(abandoned("reset", true)).toBe("failed");
});

describe("addresses", () => {
  const withAddress = (state: State): void => {
    const baseline = inService(state);
    state.baseline.set({ ...baseline, addresses: { apiAddress: "192.0.2.2", nodeIp: "192.0.2.2" } });
  };
  const checksOf = async (collectors: Partial<Collectors>, more: Partial<StatusInput> = {}) => {
    const state = memoryState();
    withAddress(state);
    const answer = await status(state, { collectors: { ...nothing, ...collectors }, ...more }).node();
    return { verdict: answer.health.verdict, failed: answer.health.checks.filter(({ ok: isOk }) => !isOk) };
  };

  test("B180, B181: the recorded address is gone: that is said, and that k0s waits for it", async () => {
    const host = machine({ units: { "k0scontroller.service": { activeState: "inactive" } } });
    const { verdict, failed } = await checksOf({ addresses: async () => ["192.0.2.77"] }, { host });
    expect(verdict).toBe("unhealthy");
    expect(failed.map(({ name }) => name)).toEqual(["k0s", "address"]);
    expect(failed[0]?.message).toContain("it is not started without 192.0.2.2");
    expect(failed[1]?.message).toContain("this node entered service with 192.0.2.2");
  });

  test("an overlay that is down was said to want a reservation for its address", async () => {
    const host = machine({ units: { "k0scontroller.service": { activeState: "inactive" } } });
    const down = [{ name: "wg0", up: false, addresses: ["192.0.2.2/24"], peers: [] }];
    const { failed } = await checksOf({ addresses: async () => [], overlay: async () => down }, { host });
    expect(failed.map(({ name, message }) => [name, message])).toEqual([
      ["k0s", "k0scontroller.service is not active: it is not started without overlay wg0"],
      ["overlay wg0", "down"],
    ]);
  });

  test("there, or not to be read, it is no complaint", async () => {
    expect((await checksOf({ addresses: async () => ["192.0.2.2", "192.0.2.77"] })).failed).toEqual([]);
    expect((await checksOf({ addresses: async () => undefined })).failed).toEqual([]);
  });

  test("B042: two holders of the virtual address make the node degraded, and both are named", async () => {
    const ha = { vip: "192.0.2.9", holder: true, others: ["52:54:00:00:00:02"], state: "contested" } as const;
    const addresses = async () => ["192.0.2.2"];
    const { verdict, failed } = await checksOf({ addresses, ha: async () => ha });
    expect(verdict).toBe("degraded");
    expect(failed).toEqual([
      {
        name: "virtual address",
        ok: false,
        message: "192.0.2.9 has more than one holder: this node and 52:54:00:00:00:02",
      },
    ]);
    const elsewhere = { ...ha, holder: false, state: "elsewhere" } as const;
    expect((await checksOf({ addresses, ha: async () => elsewhere })).failed).toEqual([]);
  });
});
