// budget: 300 s
/**
 * A change that has to be confirmed dies at every call that it makes of the machine, by a power cut or by the end of its
 * program alone; files, baseline, claim and source 1 are then all of the old document or all of the new one, and the
 * operation says which. What was answered as kept stays.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { goOnWaiting } from "../../apply/operation/driver.ts";
import { recoverApplies } from "../../apply/recovery/driver.ts";
import { serveApply } from "../../apply/service/driver.ts";
import type { ApplyDependencies } from "../../apply/service/model.ts";
import { resumeApply } from "../../apply/waiting/driver.ts";
import { realRandom } from "../../host/random.ts";
import { mintAuthority } from "../../pki/driver.ts";
import { fingerprintOfPem } from "../../pki/fingerprint.ts";
import { MachineDied } from "../support/fake-host.ts";
import { fakeK0s } from "../support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../support/gate-service.ts";

const TIMEOUT_MS = 250_000;
const requester = { kind: "local" } as const;
const teller = { connection: 2, isOfNewCa: true } as const;

const ca = async (name: string): Promise<string> =>
  (await mintAuthority({ commonName: name, nowMs: Date.UTC(2026, 0, 1), random: realRandom })).certificate;
const [OLD_CA, NEW_CA] = [await ca("old"), await ca("new")];
const document = (pem: string, more: string): string =>
  `role: single\nnode: {name: n1}\napi:\n  enabled: true\n  operatorCA: |\n    ${pem.trim().replaceAll("\n", "\n    ")}\n${more}`;
const OLD = document(OLD_CA, "");
/** An add-on, whose release is waited for; a stack, whose folder is new; timers; a new CA. */
const NEW = document(
  NEW_CA,
  `addons: [{name: ingress, chart: "oci://r.example.com/ingress"}]
manifests: [{name: site, files: [{name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}]}]
upgrades: {automatic: download}
`,
);

afterAll(removeServices);

class Rig {
  readonly one: GateService = gateService(OLD, fakeK0s({ slowness: 0 }), { isInMemory: true });
  dependencies: ApplyDependencies = this.#fit(this.one.dependencies);
  isKept = false;
  #late = Promise.withResolvers<void>();

  constructor() {
    const fingerprint = fingerprintOfPem(OLD_CA) ?? "";
    this.one.state().claim.record({ operatorCA: OLD_CA, fingerprint, atMs: 1, by: "document" });
  }

  #fit(dependencies: ApplyDependencies): ApplyDependencies {
    return Object.assign(dependencies, { holdFor: () => this.#late.promise, lastConnection: () => 1 });
  }

  /** The operation, or why it could not be made. */
  async make(): Promise<string> {
    const request = { document: NEW, requester, acknowledge: false, isDryRun: false, confirmWithinMs: 60_000 };
    const made = await serveApply(this.dependencies, request);
    if (made.kind === "refused") throw new Error(made.body.error);
    return made.answer.operation ?? "";
  }

  async tell(id: string, word: "confirm" | "take-back"): Promise<void> {
    const told = await resumeApply(this.dependencies, id, { word, teller });
    this.isKept ||= told.kind === "answer";
  }

  async start(bootId?: string): Promise<void> {
    this.dependencies = this.#fit(this.one.reopen(bootId));
    const recovered = await recoverApplies(this.dependencies);
    if (!recovered.ok) throw new Error(recovered.error.message);
    await goOnWaiting(this.dependencies);
  }

  /** Whatever still waits is confirmed, or its time is over. */
  async end(how: "confirm" | "late"): Promise<void> {
    const open = this.one.state().operations.running();
    if (open === undefined) return;
    expect(open.phase).toBe("awaiting-confirmation");
    if (how === "confirm") return this.tell(open.id, "confirm");
    this.#late.resolve();
    while (this.one.state().operations.running() !== undefined) await Bun.sleep(0);
  }

  shape(): unknown {
    const { fake } = this.one;
    const state = this.one.state();
    const baseline = state.baseline.get();
    const files = fake.paths().filter((path) => !/^\/(?:var\/lib\/corium\/undo|run)\//.test(path));
    return {
      files: Object.fromEntries(files.map((path) => [path, fake.text(path)])),
      folder: fake.paths("/var/lib/k0s/manifests/site/").length > 0,
      timer: fake.unitTable.get("corium-upgrade.timer")?.isEnabled === true,
      baseline: [baseline?.document.text, baseline?.inputHash, baseline?.rendered],
      ca: state.claim.get()?.operatorCA,
      undo: fake.paths("/var/lib/corium/undo/").filter((path) => fake.text(path)?.includes('"open"') === true),
    };
  }
}

const asOld = new Rig().shape();
const asNew = await (async () => {
  const rig = new Rig();
  await rig.tell(await rig.make(), "confirm");
  return rig.shape();
})();

/** Whether it went through. */
async function survives(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (thrown) {
    if (!(thrown instanceof MachineDied)) throw thrown;
    return false;
  }
}

function judge(rig: Rig): void {
  const [operation] = rig.one.state().operations.list();
  const isNew = rig.one.state().baseline.get()?.document.text === NEW;
  expect(rig.shape()).toEqual(isNew ? asNew : asOld);
  expect(rig.one.state().operations.running()).toBeUndefined();
  if (operation !== undefined) {
    const { phase, failureReason, steps } = operation;
    const isApplied = phase === "succeeded" || failureReason?.includes("it had been recorded") === true;
    expect([isApplied, phase === "succeeded"]).toEqual([isNew, steps.at(-1)?.state === "done"]);
  }
  if (rig.isKept) expect(isNew).toBe(true);
  rig.one.state().close();
  removeServices();
}

/** `work` dies at each of its calls; after each death the node starts again. What came of it, in order. */
async function dieEverywhere(
  work: (rig: Rig) => Promise<void>,
  { fate, after }: { readonly fate: "before" | "after"; readonly after: (rig: Rig) => Promise<void> },
): Promise<readonly boolean[]> {
  const kept: boolean[] = [];
  for (let at = 1; ; at += 1) {
    const rig = new Rig();
    rig.one.fake.dieAt(at, fate);
    const isThrough = await survives(() => work(rig));
    if (!isThrough) await after(rig);
    kept.push(rig.one.state().baseline.get()?.document.text === NEW);
    judge(rig);
    if (isThrough) return kept;
    expect(at).toBeLessThan(500);
  }
}

const confirmed = async (rig: Rig): Promise<void> => rig.tell(await rig.make(), "confirm");
const cancelled = async (rig: Rig): Promise<void> => rig.tell(await rig.make(), "take-back");

const cut = async (rig: Rig): Promise<void> => {
  rig.one.fake.boot();
  await rig.start("the-next-boot");
};
const killed =
  (how: "confirm" | "late") =>
  async (rig: Rig): Promise<void> => {
    rig.one.fake.respawn();
    await rig.start();
    await rig.end(how);
  };

describe.each(["before", "after"] as const)("dead %s each call", (fate) => {
  test(
    "a power cut, up to the confirmation: old or new",
    async () => {
      const kept = await dieEverywhere(confirmed, { fate, after: cut });
      expect([kept[0], kept.at(-1)]).toEqual([false, true]);
    },
    TIMEOUT_MS,
  );

  test(
    "the program alone, and who confirms comes back: what waits is kept then",
    async () => {
      const kept = await dieEverywhere(confirmed, { fate, after: killed("confirm") });
      expect([kept[0], kept.at(-1)]).toEqual([false, true]);
    },
    TIMEOUT_MS,
  );

  test(
    "the program alone, and nobody comes back: old, unless it was recorded",
    async () => {
      await dieEverywhere(confirmed, { fate, after: killed("late") });
    },
    TIMEOUT_MS,
  );

  test(
    "while it is taken back, by a power cut or alone: what is half put back can't be confirmed any more",
    async () => {
      const kept = await dieEverywhere(cancelled, { fate, after: cut });
      expect(kept.filter(Boolean)).toEqual([]);
      await dieEverywhere(cancelled, { fate, after: killed("confirm") });
    },
    TIMEOUT_MS,
  );

  test(
    "again while the next start goes on with it",
    async () => {
      for (let at = 1, isThrough = false; !isThrough; at += 1) {
        const rig = new Rig();
        const id = await rig.make();
        rig.one.fake.respawn();
        rig.one.fake.dieAt(at, fate);
        isThrough = await survives(async () => {
          await rig.start();
          await rig.tell(id, "confirm");
        });
        if (!isThrough) await cut(rig);
        judge(rig);
      }
    },
    TIMEOUT_MS,
  );
});

test("the control: a record that comes before the files are put back is found", async () => {
  const rig = new Rig();
  const id = await rig.make();
  await rig.tell(id, "take-back");
  rig.one.fake.put("/etc/k0s/k0s.yaml", "of neither");
  expect(() => judge(rig)).toThrow();
});
