import { describe, expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import { ok } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import type { StepContext } from "../kit/step.ts";
import { fakeHost, type FakeHost, MachineDied } from "../test/support/fake-host.ts";
import { type FakeK0s, fakeK0s } from "../test/support/fake-k0s.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { k0sExecutors } from "./driver.ts";
import type { K0sStep } from "./model.ts";
import { planK0s } from "./plan.ts";
import { isTokenRefused } from "./refused-token.ts";
import { renderK0s } from "./render.ts";

const UNIT = "/etc/systemd/system/k0scontroller.service";
const KEPT = "/var/lib/corium/etc/systemd/system";

const stack = { name: "site", files: [{ name: "ns.yaml", content: "apiVersion: v1\nkind: Namespace\n" }] };
const ha = { enabled: true, virtualIP: "192.0.2.9/24", authPass: 'a"b\\c', unicastPeers: [] };
const controller = makeDocument({ role: "controller+worker", ha, manifests: [stack] });
const secrets = new Map([["ha.authPass", new Secret("ha.authPass", 'a"b\\c')]]);

const stepsOf = (document: Document): readonly K0sStep[] => planK0s(document, renderK0s({ document, addresses: {} }));

async function run(steps: readonly K0sStep[], context: StepContext): Promise<string | undefined> {
  for (const step of steps) {
    const executor = k0sExecutors[step.kind] as (typeof k0sExecutors)["k0s:start"];
    const before = await executor.check(step as never, context);
    if (!before.ok) return `${step.id}: ${before.error.message}`;
    if (before.value === "done") continue;
    const done = await executor.run(step as never, context);
    if (!done.ok) return `${step.id}: ${[done.error.message, ...(done.error.details ?? [])].join("; ")}`;
    const after = await executor.check(step as never, context);
    if (!after.ok || after.value !== "done") return `${step.id}: not done`;
  }
  return undefined;
}

function machine(k0s: FakeK0s = fakeK0s()): { fake: FakeHost; context: StepContext; messages: string[] } {
  const fake = fakeHost({ programs: { k0s: k0s.program } });
  const messages: string[] = [];
  return { fake, messages, context: { host: fake, secrets, report: (message) => void messages.push(message) } };
}

test("a controller is installed, kept, started and waited for", async () => {
  const { fake, context, messages } = machine(fakeK0s({ slowness: 3 }));
  expect(await run(stepsOf(controller), context)).toBeUndefined();
  expect(fake.text("/etc/k0s/k0s.yaml")).toContain('authPass: "a\\"b\\\\c"');
  expect(fake.node("/etc/k0s/k0s.yaml")?.mode).toBe(0o600);
  expect(fake.text("/var/lib/k0s/manifests/site/ns.yaml")).toBe(stack.files[0]?.content);
  expect(fake.text(`${KEPT}/k0scontroller.service`)).toBe(fake.text(UNIT));
  expect(fake.node(`${KEPT}/multi-user.target.wants/k0scontroller.service`)?.kind).toBe("symlink");
  expect(messages.some((line) => line.startsWith("waiting for k0s to answer: k0s status: "))).toBe(true);
  expect(fake.calls.some((call) => call.includes("k0s start"))).toBe(false);
  expect(fake.paths("/run/corium")).toEqual([]);
});

test("B181: what holds it back is there, and known to systemd, before the unit is", async () => {
  const { fake, context } = machine();
  const addresses = { apiAddress: "192.0.2.2", nodeIp: "192.0.2.2" };
  const steps = planK0s(controller, renderK0s({ document: controller, addresses }));
  expect(await run(steps, context)).toBeUndefined();
  const path = "k0scontroller.service.d/50-corium-address.conf";
  expect(fake.text(`${KEPT}/${path}`)).toContain("Requires=corium-address@192.0.2.2.service");
  const at = (text: string): number => fake.calls.findIndex((call) => call.includes(text));
  expect(at("daemonReload")).toBeGreaterThan(at(path));
  expect(at("k0s install")).toBeGreaterThan(at("daemonReload"));
});

test("a second run changes nothing", async () => {
  const { fake, context } = machine();
  expect(await run(stepsOf(controller), context)).toBeUndefined();
  const before = fake.calls.length;
  expect(await run(stepsOf(controller), context)).toBeUndefined();
  const changing = fake.calls.slice(before).filter((call) => /write|install|keep|start |restart|remove/.test(call));
  expect(changing).toEqual([]);
});

describe("an existing unit", () => {
  test("that does the same is kept: k0s would say 'Init already exists'", async () => {
    const { fake, context } = machine();
    await run(stepsOf(controller), context);
    const installs = (): number => fake.calls.filter((call) => call.includes("k0s install")).length;
    expect(installs()).toBe(1);
    const reordered = fake.text(UNIT)?.replace(/(--config=\S+) (.*)$/m, "$2 $1 --data-dir=/var/lib/k0s");
    fake.put(UNIT, reordered ?? "");
    expect(await run(stepsOf(controller), context)).toBeUndefined();
    expect(installs()).toBe(1);
  });

  test("that differs is replaced with --force", async () => {
    const { fake, context } = machine();
    await run(stepsOf(controller), context);
    const labelled = { ...controller, node: { labels: { pool: "edge" }, taints: [] } };
    expect(await run(stepsOf(labelled), context)).toBeUndefined();
    expect(fake.calls.filter((call) => call.includes("--force"))).toHaveLength(1);
    expect(fake.text(`${KEPT}/k0scontroller.service`)).toContain("--labels=pool=edge");
  });
});

test("a config that k0s refuses is never in place, and no secret is in the message", async () => {
  const { fake, context } = machine(fakeK0s({ invalid: 'a\\"b\\\\c' }));
  const failure = await run(stepsOf(controller), context);
  expect(failure).toBe(
    "k0s:config: k0s refuses its configuration; another problem; spec: <secret:ha.authPass> is not supported",
  );
  expect(fake.text("/etc/k0s/k0s.yaml")).toBeUndefined();
});

test("a unit that loops is a failure with its journal, not an endless wait", async () => {
  const { context } = machine(fakeK0s({ poison: "192.0.2.9" }));
  const failure = await run(stepsOf(controller), context);
  expect(failure).toContain("k0scontroller stops and is restarted again and again");
  expect(failure).toContain("unknown flag");
});

test("a status that hangs is waited out under its timeout, and said", async () => {
  const hanging = fakeK0s();
  const { fake, context, messages } = machine(hanging);
  fake.programs.set("k0s", (request, host) =>
    request.argv[1] === "status"
      ? { exitCode: null, signal: "SIGTERM", timedOut: true, durationMs: request.timeoutMs ?? 0 }
      : hanging.program(request, host),
  );
  expect(await run(stepsOf(controller), context)).toStartWith("k0s:ready: waited 15 min for k0s to answer");
  expect(messages.at(-1)).toBe("waiting for k0s to answer: k0s status: it gave no answer within 10 s");
});

test("k0s that answered is ready, also when a slow machine lets the next question go unanswered", async () => {
  const flaky = fakeK0s();
  const { fake, context } = machine(flaky);
  let answers = 0;
  fake.programs.set("k0s", async (request, host) => {
    const answer = await flaky.program(request, host);
    const isAnswer = typeof answer === "string" || (answer.exitCode ?? 0) === 0;
    if (request.argv[1] !== "status" || !isAnswer) return answer;
    answers += 1;
    return answers === 1 ? answer : { exitCode: null, signal: "SIGTERM", timedOut: true, durationMs: 10_000 };
  });
  expect(await run(stepsOf(controller), context)).toBeUndefined();
});

test("a token with a trailing newline, wrapped at 76 columns, is stored as one line", async () => {
  const worker = makeDocument({ role: "worker", join: { token: "x" } });
  const { fake, context } = machine();
  const token = new Map([["join.token", new Secret("join.token", "QUJD\r\nREVG\n")]]);
  expect(await run(stepsOf(worker), { ...context, secrets: token })).toBeUndefined();
  expect(fake.text("/etc/k0s/join-token")).toBe("QUJDREVG\n");
  expect(fake.node("/etc/k0s/join-token")?.mode).toBe(0o600);
  expect(fake.calls.join("\n")).not.toContain("QUJD");
  // A later run does without the source.
  expect(await run(stepsOf(worker), { ...context, secrets: new Map() })).toBeUndefined();
});

describe("a join token that the cluster does not take", () => {
  const worker = makeDocument({ role: "worker", join: { token: "x" } });
  const token = (text: string) => new Map([["join.token", new Secret("join.token", text)]]);
  const UNAUTHORIZED =
    'level=error msg="failed to join existing control plane: unexpected response status: 401 Unauthorized"';

  /** k0s that never answers; its journal says this from its start on, another line each time that it is read. */
  function refusing(line: string) {
    const k0s = fakeK0s();
    const { fake, context, messages } = machine(k0s);
    let read = 0;
    fake.programs.set("k0s", (request, host) => {
      if (request.argv[1] !== "status") return k0s.program(request, host);
      const unit = fake.unitTable.get("k0sworker.service");
      if (unit !== undefined) unit.journal = [...(unit.journal ?? []), `time=${++read} ${line}`].slice(-20);
      return { exitCode: 1, stderr: "Error: status: not running\n" };
    });
    return { fake, messages, context: { ...context, secrets: token("QUJD") } };
  }

  test("B087: is said while k0s tries it, and after a minute is the failure, with the cure", async () => {
    const { context, messages, fake } = refusing(UNAUTHORIZED);
    const before = fake.clock.monotonicMs();
    const failure = await run(stepsOf(worker), context);
    expect(failure).toStartWith(
      "k0s:ready: the cluster refuses the join token (401): it has expired, or was revoked; time=",
    );
    expect(messages).toContain(
      "waiting for k0s to answer: the cluster refuses the join token (401): it has expired, or was revoked",
    );
    expect(fake.clock.monotonicMs() - before).toBeLessThan(120_000);
    expect(failure).not.toContain("QUJD");
  });

  test("also when k0s stops and is started again over it", async () => {
    const { context, fake } = refusing("Error: unexpected response status: 401 Unauthorized");
    const systemd = {
      ...fake.systemd,
      status: async (unit: string) => {
        const found = await fake.systemd.status(unit);
        const restarts = Math.floor(fake.clock.monotonicMs() / 10_000);
        return found.ok && found.value.activeState === "active"
          ? { ...found, value: { ...found.value, restarts } }
          : found;
      },
    };
    const failure = await run(stepsOf(worker), { ...context, host: { ...fake, systemd } });
    expect(failure).toStartWith("k0s:ready: the cluster refuses the join token (401)");
  });

  test("also when it stopped before anybody looked", async () => {
    const { context, fake } = machine();
    const systemd = {
      ...fake.systemd,
      status: async (unit: string) => {
        const found = await fake.systemd.status(unit);
        const isStarted = fake.calls.some((call) => call.startsWith("systemd.start "));
        return found.ok && isStarted ? ok({ ...found.value, activeState: "activating", restarts: 1 }) : found;
      },
      journalTail: async () => ok([UNAUTHORIZED]),
    };
    const failure = await run(stepsOf(worker), { ...context, host: { ...fake, systemd }, secrets: token("QUJD") });
    expect(failure).toStartWith("k0s:start: the cluster refuses the join token (401)");
  });

  test("what an earlier token left in the journal is not held against the next one", async () => {
    const { context, fake } = machine();
    const steps = stepsOf(worker);
    expect(await run(steps.slice(0, -1), { ...context, secrets: token("QUJD") })).toBeUndefined();
    const unit = fake.unitTable.get("k0sworker.service");
    if (unit === undefined) throw new Error("no unit");
    unit.journal = [UNAUTHORIZED];
    expect(await run(steps, { ...context, secrets: token("QUJD") })).toBeUndefined();
  });

  test("B087: another token is taken by a k0s that still tries the first: it is started anew", async () => {
    const { context, fake } = machine();
    const steps = stepsOf(worker).slice(0, -1);
    expect(await run(steps, { ...context, secrets: token("QUJD") })).toBeUndefined();
    const from = fake.calls.length;
    expect(await run(steps, { ...context, secrets: token("REVG") })).toBeUndefined();
    expect(fake.text("/etc/k0s/join-token")).toBe("REVG\n");
    const calls = fake.calls.slice(from).filter((call) => /systemd\.(stop|start)/.test(call));
    expect(calls).toEqual(["systemd.stop k0sworker.service", "systemd.start k0sworker.service"]);
  });

  test("words of k0s and of the kubelet are known; other troubles are not blamed on the token", () => {
    expect(isTokenRefused(["cannot create certificate signing request: Unauthorized"])).toBe(true);
    expect(isTokenRefused(["dial tcp 192.0.2.9:401: connection refused", "took 401 ms", "403 Forbidden"])).toBe(false);
  });
});

test("power lost at any call: after the next boot the node is as without it", async () => {
  for (const when of ["before", "after"] as const) {
    for (let at = 1; ; at += 1) {
      const { fake, context } = machine();
      fake.dieAt(at, when);
      let isThrough = false;
      try {
        expect(await run(stepsOf(controller), context)).toBeUndefined();
        isThrough = true;
      } catch (error) {
        if (!(error instanceof MachineDied)) throw error;
        fake.boot();
        expect(await run(stepsOf(controller), context)).toBeUndefined();
      }
      expect(fake.text(`${KEPT}/k0scontroller.service`)).toContain("--no-taints=true");
      fake.boot();
      expect(fake.text(UNIT)).toContain("--no-taints=true");
      expect(fake.text("/etc/k0s/k0s.yaml")).toContain("vrrpInstances");
      if (isThrough) break;
      expect(at).toBeLessThan(200);
    }
  }
}, 120_000);
