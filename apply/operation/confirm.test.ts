/** A change that has to be confirmed: kept, taken back, waited for by the next process, undone by the next boot. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { realRandom } from "../../host/random.ts";
import { mintAuthority } from "../../pki/driver.ts";
import { fingerprintOfPem } from "../../pki/fingerprint.ts";
import { fakeK0s } from "../../test/support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../../test/support/gate-service.ts";
import { recoverApplies } from "../recovery/driver.ts";
import { serveApply } from "../service/driver.ts";
import type { ApplyDependencies, ServiceOutcome, ServiceRequest } from "../service/model.ts";
import { confirmByConnection, newCaOf, resumeApply } from "../waiting/driver.ts";
import { goOnWaiting } from "./driver.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(60_000);

const BEFORE = "role: single\nnode: {name: n1}\n";
const ADDON = `${BEFORE}addons:\n  - {name: ingress, chart: "oci://r.example.com/ingress"}\n`;
const STACK = `${BEFORE}manifests:\n  - name: site\n    files:\n      - {name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}\n`;
const OFF = `${BEFORE}api: {enabled: false}\n`;
const CONFIG = "/etc/k0s/k0s.yaml";
const requester = { kind: "local" } as const;
const fresh = { connection: 2, isOfNewCa: false } as const;
afterEach(removeServices);

/** Time passes when `pass` is called, and not by itself. */
class Window {
  readonly one: GateService;
  #late = Promise.withResolvers<void>();

  constructor(before = BEFORE, k0s = fakeK0s({ slowness: 0 })) {
    this.one = gateService(before, k0s);
    this.fit(this.one.dependencies);
  }

  fit(dependencies: ApplyDependencies): ApplyDependencies {
    this.#late = Promise.withResolvers();
    return Object.assign(dependencies, { holdFor: () => this.#late.promise, lastConnection: () => 1 });
  }

  post(document: string, more: Partial<ServiceRequest> = {}): Promise<ServiceOutcome> {
    const request = { document, requester, acknowledge: false, isDryRun: false, confirmWithinMs: 60_000, ...more };
    return serveApply(this.one.dependencies, request);
  }

  /** Made and waiting: the operation. */
  async open(document: string): Promise<string> {
    const outcome = await this.post(document);
    expect(outcome).toMatchObject({ answer: { status: "awaiting-confirmation" } });
    return outcome.kind === "answer" ? (outcome.answer.operation ?? "") : "";
  }

  tell(
    id: string,
    word: "confirm" | "take-back" = "confirm",
    teller = fresh as { connection: number; isOfNewCa: boolean },
  ) {
    return resumeApply(this.one.dependencies, id, { word, teller });
  }

  async pass(): Promise<void> {
    this.#late.resolve();
    while (this.one.state().operations.running() !== undefined) await Bun.sleep(1);
    this.#late = Promise.withResolvers();
  }

  /** The program was killed and is started again. */
  async restart(bootId?: string): Promise<void> {
    const dependencies = this.fit(this.one.reopen(bootId));
    Object.assign(this.one.dependencies, dependencies);
    expect((await recoverApplies(dependencies)).ok).toBe(true);
    await goOnWaiting(dependencies);
  }

  phase(id: string): unknown {
    return this.one.state().operations.get(id)?.phase;
  }

  /** All that an undo has to bring back, byte for byte. */
  shape(): unknown {
    const { fake } = this.one;
    const state = this.one.state();
    const files = fake.paths().filter((path) => !/^\/(?:var\/lib\/corium\/undo|run)\//.test(path));
    return [state.baseline.get(), state.claim.get(), files.map((path) => [path, fake.text(path)])];
  }
}

describe("the change is made, and waits", () => {
  test("confirmed: it is what the node runs, and source 1 says so", async () => {
    const window = new Window();
    const id = await window.open(ADDON);
    expect(window.one.fake.text(CONFIG)).toContain("ingress");
    expect(window.one.state().baseline.get()?.document.text).toBe(BEFORE);
    expect(window.one.state().operations.get(id)).toMatchObject({
      phase: "awaiting-confirmation",
      message: expect.stringMatching(/taken back at 20.*Z unless .* over a new connection: cctl confirm ADDR /),
    });
    expect(await window.tell(id)).toMatchObject({ answer: { status: "reconciled", operation: id } });
    expect(window.phase(id)).toBe("succeeded");
    expect(window.one.state().baseline.get()?.document.text).toBe(ADDON);
    expect(window.one.fake.text("/etc/corium/config.yaml")).toBe(ADDON);
    expect(await window.tell(id)).toMatchObject({ status: 409, body: { reason: "not-waiting" } });
  });

  test.each([ADDON, STACK, OFF])("B166: not confirmed: everything is as before, byte for byte", async (document) => {
    const window = new Window();
    const before = window.shape();
    const id = await window.open(document);
    await window.pass();
    expect(window.one.state().operations.get(id)).toMatchObject({
      phase: "rolled-back",
      failureReason: expect.stringContaining("not confirmed in time"),
    });
    expect(window.shape()).toEqual(before);
    expect(window.one.state().documents.list()).toHaveLength(1);
    // The undo of it is over: a later one goes through.
    const later = await window.open(ADDON);
    await window.tell(later);
    expect(window.phase(later)).toBe("succeeded");
  });

  describe("edited by hand while it waited: that was overwritten, and kept nowhere", () => {
    const kept = ({ one: { fake } }: Window): readonly string[] =>
      fake.paths("/var/lib/corium/by-hand").map((path) => fake.text(path) ?? "");

    test("a file that the undo puts back, and one that it removes", async () => {
      const window = new Window();
      const id = await window.open(`${ADDON}${STACK.slice(BEFORE.length)}`);
      const stack = "/var/lib/k0s/manifests/site/a.yaml";
      for (const path of [CONFIG, stack]) window.one.fake.put(path, `# mine: ${path}`);
      await window.tell(id, "take-back");
      expect(window.one.fake.text(CONFIG)).not.toContain("mine");
      expect(window.one.fake.text(stack)).toBeUndefined();
      expect(kept(window).toSorted()).toEqual([`# mine: ${CONFIG}`, `# mine: ${stack}`]);
    });

    test("the same by the next boot", async () => {
      const window = new Window();
      await window.open(ADDON);
      for (const path of [CONFIG, `/var/lib/corium${CONFIG}`]) window.one.fake.put(path, "# mine");
      window.one.fake.sync();
      window.one.fake.boot();
      await window.restart("the next boot");
      expect(window.one.fake.text(CONFIG)).not.toContain("mine");
      expect(kept(window)).toEqual(["# mine"]);
    });

    test("source 1, when it is confirmed", async () => {
      const window = new Window();
      const id = await window.open(ADDON);
      window.one.fake.put("/etc/corium/config.yaml", `${BEFORE}# mine`);
      await window.tell(id);
      expect(window.one.fake.text("/etc/corium/config.yaml")).toBe(ADDON);
      expect(kept(window)).toEqual([`${BEFORE}# mine`]);
    });

    test("for contrast: nothing edited, nothing kept", async () => {
      const window = new Window();
      await window.tell(await window.open(ADDON), "take-back");
      await window.tell(await window.open(`${ADDON}${STACK.slice(BEFORE.length)}`));
      expect(kept(window)).toEqual([]);
    });
  });

  test.each([false, true])(
    "while it was taken back it was said to wait for a confirmation (restarted: %p)",
    async (isRestarted) => {
      const window = new Window();
      const id = await window.open(ADDON);
      if (isRestarted) await window.restart();
      const { fake } = window.one;
      const seen: unknown[] = [];
      const write = fake.files.write.bind(fake.files);
      Object.assign(fake.files, {
        write: (...given: Parameters<typeof fake.files.write>) => {
          if (given[0] === CONFIG) seen.push(window.phase(id));
          return write(...given);
        },
      });
      await window.pass();
      expect([seen, window.phase(id)]).toEqual([["running"], "rolled-back"]);
    },
  );

  test("cancelled: undone at once", async () => {
    const window = new Window();
    const before = window.shape();
    const id = await window.open(ADDON);
    expect(await window.tell(id, "take-back")).toMatchObject({ body: { reason: "taken-back" } });
    expect([window.phase(id), window.shape()]).toEqual(["cancelled", before]);
  });

  test("over a connection that is older than the change it does not count", async () => {
    const window = new Window();
    const id = await window.open(ADDON);
    const old = await window.tell(id, "confirm", { connection: 1, isOfNewCa: false });
    expect(old).toMatchObject({ status: 409, body: { reason: "old-connection" } });
    expect(window.phase(id)).toBe("awaiting-confirmation");
    await window.tell(id);
  });

  test("k0s does not come back: undone without waiting for anybody", async () => {
    const window = new Window(BEFORE, fakeK0s({ slowness: 0, poison: "ingress" }));
    const before = window.shape();
    expect(await window.post(ADDON)).toMatchObject({ status: 409, body: { reason: "rolled-back" } });
    expect(window.shape()).toEqual(before);
  });

  test("meanwhile no other change, a document like the old one included; dry runs disturb nothing", async () => {
    const window = new Window();
    const id = await window.open(ADDON);
    const calls = window.one.fake.calls.length;
    for (const document of [STACK, BEFORE]) {
      expect(await window.post(document, { isDryRun: true })).toMatchObject({ kind: "answer" });
      expect(await window.post(document)).toMatchObject({ status: 409, body: { reason: "busy", operation: id } });
    }
    expect([window.one.fake.calls.length, window.phase(id)]).toEqual([calls, "awaiting-confirmation"]);
    await window.tell(id);
  });
});

describe("the program dies while it waits", () => {
  test("started again in time it waits on, and is confirmed", async () => {
    const window = new Window();
    const id = await window.open(ADDON);
    await window.restart();
    expect([window.phase(id), window.one.state().baseline.get()?.document.text]).toEqual([
      "awaiting-confirmation",
      BEFORE,
    ]);
    expect(await window.tell(id)).toMatchObject({ answer: { restarted: ["k0scontroller"] } });
    expect([window.phase(id), window.one.state().baseline.get()?.document.text]).toEqual(["succeeded", ADDON]);
    expect(window.one.state().documents.list()[0]?.requester).toEqual(requester);
  });

  test("started again in time it waits on, and nobody confirms", async () => {
    const window = new Window();
    const before = window.shape();
    const id = await window.open(ADDON);
    await window.restart();
    await window.pass();
    expect([window.phase(id), window.shape()]).toEqual(["rolled-back", before]);
  });

  test("started again when the time is over it undoes it", async () => {
    const window = new Window();
    const before = window.shape();
    const id = await window.open(ADDON);
    await window.one.fake.clock.sleep(60_001);
    await window.restart();
    expect([window.phase(id), window.shape()]).toEqual(["rolled-back", before]);
    expect(window.one.state().operations.get(id)?.failureReason).toContain("not confirmed");
  });

  test.each([0, 3_600_000])(
    "B166: another boot undoes it before k0s reads it, whatever its clock says (%i ms later)",
    async (later) => {
      const window = new Window();
      const before = window.shape();
      const id = await window.open(ADDON);
      window.one.fake.boot();
      await window.one.fake.clock.sleep(later);
      await window.restart("another-boot");
      expect([window.phase(id), window.shape()]).toEqual(["rolled-back", before]);
    },
  );
});

describe("a change of api", () => {
  const ca = async (name: string): Promise<string> =>
    (await mintAuthority({ commonName: name, nowMs: Date.UTC(2026, 0, 1), random: realRandom })).certificate;
  const withCa = (pem: string): string =>
    `${BEFORE}api:\n  enabled: true\n  operatorCA: |\n    ${pem.trim().replaceAll("\n", "\n    ")}\n`;
  async function rotating(): Promise<{ window: Window; old: string; next: string }> {
    const [old, next] = [await ca("old"), await ca("next")];
    const window = new Window(withCa(old));
    const fingerprint = fingerprintOfPem(old) ?? "";
    window.one.state().claim.record({ operatorCA: old, fingerprint, atMs: 1, by: "document" });
    return { window, old, next };
  }

  test("needs a confirmation, and the refusal says how to ask for one; a plan needs none", async () => {
    const window = new Window();
    const refused = await window.post(OFF, { confirmWithinMs: undefined as unknown as number });
    expect(refused).toMatchObject({ status: 409, body: { reason: "needs-confirmation" } });
    expect(refused.kind === "refused" ? refused.body.error : "").toContain("--confirm-within 2m");
    const { confirmWithinMs: _none, ...plain } = { confirmWithinMs: 0, isDryRun: true };
    expect(
      await serveApply(window.one.dependencies, { document: OFF, requester, acknowledge: false, ...plain }),
    ).toMatchObject({
      answer: { status: "planned", consequences: [expect.stringContaining("--confirm-within"), expect.any(String)] },
    });
  });

  test("a new CA: its operator confirms it, the old one's can't, and then it alone is obeyed", async () => {
    const { window, old, next } = await rotating();
    const id = await window.open(withCa(next));
    expect(newCaOf(window.one.state())).toBe(next);
    expect(window.one.state().claim.get()?.operatorCA).toBe(old);
    // A person of the old CA was sent to a newer connection first, and then refused for another reason without a cure.
    for (const connection of [1, 2]) {
      expect(await window.tell(id, "confirm", { connection, isOfNewCa: false })).toMatchObject({
        status: 409,
        body: { reason: "old-ca", error: expect.stringContaining("cctl --dir") },
      });
    }
    await window.tell(id, "confirm", { connection: 2, isOfNewCa: true });
    expect(window.phase(id)).toBe("succeeded");
    expect(window.one.state().claim.get()).toMatchObject({ operatorCA: next, fingerprint: fingerprintOfPem(next) });
    expect(newCaOf(window.one.state())).toBeUndefined();
    expect(
      window.one
        .state()
        .events.since(0)
        .some(({ kind }) => kind === "ca-rotated"),
    ).toBe(true);
  });

  test("a CA that nobody has a certificate of undoes itself", async () => {
    const { window, next } = await rotating();
    const before = window.shape();
    await window.open(withCa(next));
    await window.pass();
    expect([newCaOf(window.one.state()), window.shape()]).toEqual([undefined, before]);
  });

  test("a new CA is let in by the program that is started again, too", async () => {
    const { window, next } = await rotating();
    const id = await window.open(withCa(next));
    await window.restart();
    expect(newCaOf(window.one.state())).toBe(next);
    await window.tell(id, "confirm", { connection: 2, isOfNewCa: true });
    expect(window.one.state().claim.get()?.operatorCA).toBe(next);
  });

  test("asked for with a proof: the first connection of the new CA confirms it, and without one it undoes itself", async () => {
    const { window, next } = await rotating();
    const before = window.shape();
    const rotate = async (): Promise<void> => {
      const outcome = await window.post(withCa(next), { isConfirmedByConnection: true });
      expect(outcome).toMatchObject({ answer: { status: "awaiting-confirmation" } });
    };
    await rotate();
    await window.pass();
    expect(window.shape()).toEqual(before);
    await rotate();
    await confirmByConnection(window.one.dependencies, 1);
    expect(window.one.state().claim.get()?.operatorCA).not.toBe(next);
    await window.restart();
    await confirmByConnection(window.one.dependencies, 2);
    expect(window.one.state().claim.get()?.operatorCA).toBe(next);
    expect(window.one.state().operations.running()).toBeUndefined();
  });

  test("nobody claims a node in service by a document", async () => {
    const window = new Window();
    expect(await window.post(withCa(await ca("eve")))).toMatchObject({ status: 409, body: { reason: "unclaimed" } });
    expect(window.one.state().operations.list()).toEqual([]);
  });
});
