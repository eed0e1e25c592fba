import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { AppError } from "../kit/app-error.ts";
import type { DiskIdentity, Inventory } from "../kit/disk.ts";
import type { ExecRequest, ExecResult, Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Executors, StepBase } from "../kit/step.ts";
import type { Intent } from "../state/model.ts";
import type { Execution, Journal } from "./execute.ts";
import { fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import { execute } from "./execute.ts";
import { blankDisk } from "../test/support/disks.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

/** A small machine: disks carry a label, files exist. Power can be cut before or after any call's effect. */
interface World {
  readonly disks: Map<string, { identity: DiskIdentity; content: string; isBusy: boolean }>;
  readonly files: Set<string>;
  readonly runs: string[];
}

class PowerCut extends Error {}

const identity = (serial: string): DiskIdentity => ({ serial, model: "M", sizeBytes: 1000 });

const world = (...serials: string[]): World => ({
  disks: new Map(serials.map((serial) => [serial, { identity: identity(serial), content: "blank", isBusy: false }])),
  files: new Set(),
  runs: [],
});

interface FormatStep extends StepBase {
  readonly kind: "disk:format";
  readonly uuid: string;
}
interface TouchStep extends StepBase {
  readonly kind: "file:touch";
  readonly path: string;
}
type TestStep = FormatStep | TouchStep;

const uuidOf = (serial: string): string => `00000000-0000-4000-8000-${serial.padStart(12, "0")}`;
const format = (serial: string, uuid = uuidOf(serial)): FormatStep => ({
  kind: "disk:format",
  id: `disk:${serial}:format`,
  title: `format ${serial}`,
  uuid,
  destroys: [identity(serial)],
});
const touch = (path: string): TouchStep => ({ kind: "file:touch", id: `touch:${path}`, title: `touch ${path}`, path });

const serialOf = (step: FormatStep): string => step.destroys?.[0]?.serial ?? "";

const executors: Executors<TestStep> = {
  "disk:format": {
    argv: (step) => [["mkfs", serialOf(step), step.uuid]],
    check: async (step, { host }) => {
      const seen = await host.exec({ argv: ["probe", serialOf(step)] });
      return ok(seen.stdout === step.uuid ? "done" : "todo");
    },
    run: async (step, { host }) => {
      const made = await host.exec({ argv: ["mkfs", serialOf(step), step.uuid] });
      return made.exitCode === 0 ? ok(undefined) : fail("mkfs", made.stderr);
    },
  },
  "file:touch": {
    argv: (step) => [["touch", step.path]],
    check: async (step, { host }) =>
      ok((await host.exec({ argv: ["test", step.path] })).exitCode === 0 ? "done" : "todo"),
    run: async (step, { host }) => {
      await host.exec({ argv: ["touch", step.path] });
      return ok(undefined);
    },
  },
};

/** `cutAt`: the power goes at the n-th call (even: before its effect, odd: in the middle of it). */
function powered(machine: World, memory: Map<string, Intent>, cutAt = Number.POSITIVE_INFINITY) {
  let calls = 0;
  const tick = (effect: (isTorn: boolean) => void): void => {
    const call = calls++;
    if (call * 2 === cutAt) throw new PowerCut();
    effect(call * 2 + 1 === cutAt);
    if (call * 2 + 1 === cutAt) throw new PowerCut();
  };
  const exec = async ({ argv }: ExecRequest): Promise<ExecResult> => {
    const [program = "", target = "", uuid = ""] = argv;
    let [exitCode, stdout] = [0, ""];
    tick((isTorn) => {
      const disk = machine.disks.get(target);
      if (program === "probe") stdout = disk?.content ?? "";
      if (program === "mkfs" && disk !== undefined) {
        machine.runs.push(target);
        disk.content = isTorn ? "torn" : uuid;
      }
      if (program === "test") exitCode = machine.files.has(target) ? 0 : 1;
      if (program === "touch" && !isTorn) machine.files.add(target);
    });
    return {
      argv,
      exitCode,
      stdout,
      signal: null,
      stderr: "",
      timedOut: false,
      truncated: false,
      durationMs: 1,
    };
  };
  const journal: Journal = {
    intents: () => [...memory.values()],
    open: (intent) => tick((isTorn) => void (isTorn || memory.set(intent.stepId, intent))),
    close: (stepId, atMs) =>
      tick((isTorn) => {
        const intent = memory.get(stepId);
        if (!isTorn && intent !== undefined) memory.set(stepId, { ...intent, closedAtMs: atMs });
      }),
  };
  const inventory = async (): Promise<Result<Inventory, AppError>> =>
    ok({
      disks: [...machine.disks.entries()].map(([serial, disk], index) => ({
        ...blankDisk(`/dev/sd${String.fromCharCode(97 + index)}`, disk.identity),
        users: disk.isBusy ? [{ kind: "mount" as const, name: `/srv/${serial}`, isBusy: true }] : [],
      })),
      arrays: [],
      unknown: [],
    });
  const host = {
    exec,
    clock: { nowMs: () => 1, monotonicMs: () => 1, sleep: async () => undefined },
  } as unknown as Host;
  const execution: Execution = { host, secrets: new Map(), journal, inventory };
  return { execution, calls: () => calls };
}

async function runOrDie(
  steps: readonly TestStep[],
  execution: Execution,
): Promise<Result<void, AppError> | "power cut"> {
  try {
    return await execute(steps, executors, execution);
  } catch (error) {
    if (error instanceof PowerCut) return "power cut";
    throw error;
  }
}

const causeCode = (result: Result<void, AppError> | "power cut"): string | undefined =>
  result === "power cut" || result.ok ? undefined : result.error.cause?.code;

describe("execute", () => {
  const plan = [touch("hostname"), format("1"), format("2"), touch("marker")];

  test("makes what is to do, skips what is done, and says which", async () => {
    const machine = world("1", "2");
    machine.files.add("hostname");
    const { execution } = powered(machine, new Map());
    const seen: string[] = [];
    const messages: (string | undefined)[] = [];
    const result = await execute(plan, executors, {
      ...execution,
      onStep: (step, state) => seen.push(`${step.id} ${state}`),
      onMessage: (message) => messages.push(message),
    });
    expect(result.ok).toBe(true);
    expect(seen.filter((line) => !line.endsWith("running"))).toEqual([
      "touch:hostname skipped",
      "disk:1:format done",
      "disk:2:format done",
      "touch:marker done",
    ]);
    expect(messages.at(-1)).toBeUndefined();
    expect(messages).toContain("format 1");
  });

  test("a power cut at any call, twice, ends in the same node and formats no disk that was finished", async () => {
    const total = await (async () => {
      const { execution, calls } = powered(world("1", "2"), new Map());
      await execute(plan, executors, execution);
      return calls() * 2;
    })();
    expect(total).toBeGreaterThan(20);
    for (let first = 0; first < total; first++) {
      for (let second = 0; second < total; second += 5) {
        const machine = world("1", "2", "3");
        const memory = new Map<string, Intent>();
        for (const cutAt of [first, second]) await runOrDie(plan, powered(machine, memory, cutAt).execution);
        const last = await runOrDie(plan, powered(machine, memory).execution);
        expect(last).toEqual(ok(undefined));
        expect([...machine.disks.values()].map((disk) => disk.content)).toEqual([uuidOf("1"), uuidOf("2"), "blank"]);
        expect(machine.files).toEqual(new Set(["hostname", "marker"]));
        expect([...memory.values()].every((intent) => intent.closedAtMs !== undefined)).toBe(true);
        const runs = machine.runs.length;
        await runOrDie(plan, powered(machine, memory).execution);
        expect(machine.runs.length).toBe(runs);
      }
    }
  });

  test("the intent is durable before the first destructive call", async () => {
    const machine = world("1");
    const memory = new Map<string, Intent>();
    for (let cutAt = 0; machine.runs.length === 0; cutAt++)
      await runOrDie([format("1")], powered(machine, memory, cutAt).execution);
    expect(memory.get("disk:1:format")?.disks).toEqual([identity("1")]);
  });

  test("after a cut, another disk in the place of the first is not formatted", async () => {
    const machine = world("1", "9");
    const memory = new Map<string, Intent>();
    memory.set("disk:1:format", {
      stepId: "disk:1:format",
      step: format("1"),
      disks: [identity("1")],
      openedAtMs: 1,
    });
    const swapped: FormatStep = { ...format("9", uuidOf("1")), id: "disk:1:format" };
    expect(causeCode(await runOrDie([swapped], powered(machine, memory).execution))).toBe("intent-disks");
    expect(machine.runs).toEqual([]);
    const corrected = { ...powered(machine, memory).execution, isSuperseded: () => true };
    expect(await runOrDie([swapped], corrected)).toEqual(ok(undefined));
    expect(machine.runs).toEqual(["9"]);
  });

  test("a finished step whose result is gone is not made again", async () => {
    const machine = world("1");
    const memory = new Map<string, Intent>();
    await execute([format("1")], executors, powered(machine, memory).execution);
    const disk = machine.disks.get("1");
    if (disk !== undefined) disk.content = "somebody's data";
    expect(causeCode(await runOrDie([format("1")], powered(machine, memory).execution))).toBe("intent-closed");
    expect(disk?.content).toBe("somebody's data");
  });

  test("a resume that chose new UUIDs is refused", async () => {
    const machine = world("1");
    const memory = new Map<string, Intent>();
    for (let cutAt = 0; machine.runs.length === 0; cutAt++)
      await runOrDie([format("1")], powered(machine, memory, cutAt).execution);
    const other = format("1", uuidOf("77"));
    expect(causeCode(await runOrDie([other], powered(machine, memory).execution))).toBe("intent-uuids");
  });

  test("a disk that is gone, doubled or mounted stops the run before anything is written", async () => {
    const gone = world("2");
    expect(causeCode(await runOrDie([format("1")], powered(gone, new Map()).execution))).toBe("disk-gone");
    const doubled = world("1");
    doubled.disks.set("copy", { identity: identity("1"), content: "blank", isBusy: false });
    expect(causeCode(await runOrDie([format("1")], powered(doubled, new Map()).execution))).toBe("disk-ambiguous");
    const mounted = world("1");
    for (const disk of mounted.disks.values()) disk.isBusy = true;
    expect(causeCode(await runOrDie([format("1")], powered(mounted, new Map()).execution))).toBe("disk-busy");
    expect([...gone.runs, ...doubled.runs, ...mounted.runs]).toEqual([]);
  });

  test("only consented disks are ever written, whatever the order of disks and cuts", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 4 }),
        async (wanted, cuts) => {
          const machine = world(...Array.from({ length: 9 }, (_, index) => String(index + 1)));
          const memory = new Map<string, Intent>();
          const steps = wanted.map((serial) => format(String(serial)));
          for (const cutAt of cuts) await runOrDie(steps, powered(machine, memory, cutAt).execution);
          await runOrDie(steps, powered(machine, memory).execution);
          for (const [serial, disk] of machine.disks)
            expect(disk.content).toBe(wanted.includes(Number(serial)) ? uuidOf(serial) : "blank");
        },
      ),
      { numRuns: 200 },
    );
  });

  test("a failing step ends the run with its cause and leaves the intent open", async () => {
    const memory = new Map<string, Intent>();
    const broken: Executors<TestStep> = {
      ...executors,
      "disk:format": { ...executors["disk:format"], run: async () => fail("mkfs", "the device is write-protected") },
    };
    const { execution } = powered(world("1"), memory);
    const result = await execute([format("1"), touch("marker")], broken, execution);
    expect(result.ok ? "" : `${result.error.message}: ${result.error.cause?.message}`).toBe(
      "could not format 1 (disk:1:format): the device is write-protected",
    );
    expect(memory.get("disk:1:format")?.closedAtMs).toBeUndefined();
  });

  test("a step that claims success without a result is a failure", async () => {
    const liar: Executors<TestStep> = {
      ...executors,
      "file:touch": { ...executors["file:touch"], run: async () => ok(undefined) },
    };
    const result = await execute([touch("x")], liar, powered(world(), new Map()).execution);
    expect(causeCode(result)).toBe("not-done");
  });
});
