// budget: 300 s
/** The shipped program: changes that are confirmed, that undo themselves, and that outlive the program that made them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { recordPath } from "../../apply/undo/model.ts";
import { realRandom } from "../../host/random.ts";
import { issueClient, mintAuthority } from "../../pki/driver.ts";
import { fingerprintOfPem } from "../../pki/fingerprint.ts";
import type { KeyPair } from "../../pki/model.ts";
import { signProof } from "../../pki/proof.ts";
import { type Daemon, daemonProgram, putInService } from "../support/daemon.ts";
import { askAs, openOperator } from "../support/operator-connection.ts";

setDefaultTimeout(120_000);

const program = daemonProgram();
interface Operator {
  readonly ca: KeyPair;
  readonly credentials: KeyPair;
}
async function operator(name: string): Promise<Operator> {
  const nowMs = Date.now();
  const ca = await mintAuthority({ commonName: name, nowMs, random: realRandom });
  return { ca, credentials: await issueClient({ authority: ca, name, role: "admin", nowMs, random: realRandom }) };
}
let ann: Operator;
let bob: Operator;
beforeAll(async () => {
  program.build();
  [ann, bob] = await Promise.all([operator("ann"), operator("bob")]);
}, 120_000);
afterAll(() => program.dispose());

/** Longer than any test lasts, and as short as the node takes. */
const [LONG, SHORT] = ["10m", "5s"];
/** For what has to be done while it waits. */
const SOME = "15s";
const api = (more: string, { ca }: Operator = ann): string =>
  `role: single\nnode: {name: n1}\napi:\n  enabled: true\n  operatorCA: |\n    ${ca.certificate.trim().replaceAll("\n", "\n    ")}\n${more}`;
const AWAIT = "  awaitConfig: true\n";
const OFF = "role: single\nnode: {name: n1}\napi: {enabled: false}\n";

async function claimed(): Promise<Daemon> {
  const stateDir = program.newStateDir();
  const { certificate: operatorCA } = ann.ca;
  const fingerprint = fingerprintOfPem(operatorCA) ?? "";
  const also: Parameters<typeof putInService>[2] = {
    also: (state) => void state.claim.record({ operatorCA, fingerprint, atMs: Date.now(), by: "document" }),
  };
  putInService(stateDir, api(""), also);
  return program.start(stateDir);
}

type Ask = readonly [method: "GET" | "POST", path: string, json?: unknown];
const ask = ({ port }: Daemon, who: Operator, ...request: Ask) => askAs(port, who.credentials, ...request);

async function make(daemon: Daemon, document: string, confirmWithin: string): Promise<string> {
  const { status, json } = await ask(daemon, ann, "POST", "/v1/config", { document, confirmWithin });
  expect([status, json["status"]]).toEqual([200, "awaiting-confirmation"]);
  return String(json["operation"]);
}

/** Over the socket, which both CAs leave open. */
const local = async (daemon: Daemon, id: string): Promise<Readonly<Record<string, unknown>>> =>
  (await daemon.get(`/v1/operations/${id}`)).body;
async function over(daemon: Daemon, id: string): Promise<Readonly<Record<string, unknown>>> {
  for (;;) {
    const operation = await local(daemon, id);
    if (!["running", "awaiting-confirmation"].includes(String(operation["phase"]))) return operation;
    await Bun.sleep(100);
  }
}
const recorded = async (daemon: Daemon): Promise<unknown> => (await daemon.get("/v1/config")).body["document"];
const source1 = ({ stateDir }: Daemon): string => readFileSync(join(stateDir, "config.yaml"), "utf8");

async function expectUndone(daemon: Daemon, id: string): Promise<void> {
  expect(await over(daemon, id)).toMatchObject({ phase: "rolled-back" });
  expect([await recorded(daemon), source1(daemon)]).toEqual([api(""), api("")]);
}

describe("a change of api", () => {
  test("is refused without a time to confirm it in, planned without, and confirmed over a new connection", async () => {
    const daemon = await claimed();
    const document = api(AWAIT);
    const refused = await ask(daemon, ann, "POST", "/v1/config", { document });
    expect([refused.status, refused.json["reason"]]).toEqual([409, "needs-confirmation"]);
    expect((await ask(daemon, ann, "POST", "/v1/config?dryRun=true", { document })).json["status"]).toBe("planned");

    const connection = await openOperator(daemon.port, ann.credentials);
    const made = await connection.call("POST", "/v1/config", { document, confirmWithin: LONG });
    const id = String(made.json["operation"]);
    const own = await connection.call("POST", `/v1/operations/${id}/confirm`);
    expect([own.status, own.json["reason"]]).toEqual([409, "old-connection"]);
    const status = await connection.call("GET", "/v1/config/status");
    expect(status.json).toMatchObject({ state: "pending", reasons: [{ code: "awaiting-confirmation" }] });
    const other = await connection.call("POST", "/v1/config", { document: api(""), confirmWithin: LONG });
    expect([other.status, other.json["operation"]]).toEqual([409, id]);
    expect(await recorded(daemon)).toBe(api(""));
    connection.close();

    const kept = await ask(daemon, ann, "POST", `/v1/operations/${id}/confirm`);
    expect([kept.status, kept.json["status"]]).toEqual([200, "reconciled"]);
    expect([await recorded(daemon), source1(daemon)]).toEqual([document, document]);
    await program.stop(daemon);
    const again = await program.start(daemon.stateDir);
    expect([await recorded(again), (await local(again, id))["phase"]]).toEqual([document, "succeeded"]);
    await program.stop(again);
  });

  test("nobody confirms it, or somebody cancels it: it is undone", async () => {
    const daemon = await claimed();
    await expectUndone(daemon, await make(daemon, api(AWAIT), SHORT));
    const id = await make(daemon, api(AWAIT), LONG);
    expect((await ask(daemon, ann, "POST", `/v1/operations/${id}/cancel`)).json).toEqual({ cancelled: id });
    expect((await local(daemon, id))["phase"]).toBe("cancelled");
    expect(await recorded(daemon)).toBe(api(""));
    await program.stop(daemon);
  });
});

describe("the program is killed while it waits", () => {
  test("started again in time: still waiting, and kept when it is confirmed", async () => {
    const first = await claimed();
    const id = await make(first, api(AWAIT), LONG);
    await program.stop(first, "SIGKILL");
    const second = await program.start(first.stateDir);
    expect((await local(second, id))["phase"]).toBe("awaiting-confirmation");
    expect((await ask(second, ann, "POST", `/v1/operations/${id}/confirm`)).status).toBe(200);
    expect(await recorded(second)).toBe(api(AWAIT));
    expect((await local(second, id))["phase"]).toBe("succeeded");
    await program.stop(second);
  });

  test("started again in time, and nobody confirms: undone when the time is over", async () => {
    const first = await claimed();
    const id = await make(first, api(AWAIT), SHORT);
    await program.stop(first, "SIGKILL");
    const second = await program.start(first.stateDir);
    await expectUndone(second, id);
    await program.stop(second);
  });

  test.each([
    ["the time is over", { untilMs: 0 }],
    ["it is another boot", { bootId: "00000000-0000-4000-a000-000000000000" }],
  ])("started again when %s: undone before the API answers", async (_, more) => {
    const first = await claimed();
    const id = await make(first, api(AWAIT), LONG);
    await program.stop(first, "SIGKILL");
    const path = recordPath(first.stateDir, id);
    const record = JSON.parse(readFileSync(path, "utf8")) as { readonly awaited: object };
    writeFileSync(path, JSON.stringify({ ...record, awaited: { ...record.awaited, ...more } }));
    const second = await program.start(first.stateDir);
    expect(await local(second, id)).toMatchObject({
      phase: "rolled-back",
      failureReason: expect.stringContaining("not confirmed"),
    });
    await expectUndone(second, id);
    await program.stop(second);
  });
});

describe("the API is turned off", () => {
  test("B166: not confirmed, it stays; confirmed, the answer is its last, and it does not come up again", async () => {
    const daemon = await claimed();
    await expectUndone(daemon, await make(daemon, OFF, SHORT));
    const id = await make(daemon, OFF, LONG);
    expect((await ask(daemon, ann, "POST", `/v1/operations/${id}/confirm`)).status).toBe(200);
    expect(await daemon.child.exited).toBe(78);
    expect(source1(daemon)).toBe(OFF);
    const again = await program.start(daemon.stateDir);
    expect(await again.child.exited).toBe(78);
  });
});

describe("a new operator CA", () => {
  const statusOf = async (daemon: Daemon, who: Operator): Promise<number> =>
    (await ask(daemon, who, "GET", "/v1/node")).status;

  test("B166: that nobody has a certificate of undoes itself, and lets nobody in afterwards", async () => {
    const daemon = await claimed();
    const id = await make(daemon, api("", bob), SOME);
    const early = await openOperator(daemon.port, bob.credentials);
    expect((await early.call("GET", "/v1/health")).status).toBe(200);
    await expectUndone(daemon, id);
    // The connection that was let in while it waited is not any more.
    expect((await early.call("GET", "/v1/health")).status).toBe(401);
    early.close();
    expect([await statusOf(daemon, ann), await statusOf(daemon, bob)]).toEqual([200, 401]);
    await program.stop(daemon);
  });

  test("is confirmed by one of its operators; until then both are let in, over a restart too, and then it alone", async () => {
    const first = await claimed();
    const id = await make(first, api("", bob), LONG);
    expect([await statusOf(first, ann), await statusOf(first, bob)]).toEqual([200, 200]);
    const old = await ask(first, ann, "POST", `/v1/operations/${id}/confirm`);
    expect([old.status, old.json["reason"]]).toEqual([409, "old-ca"]);
    await program.stop(first, "SIGKILL");
    const second = await program.start(first.stateDir);
    expect([await statusOf(second, ann), await statusOf(second, bob)]).toEqual([200, 200]);
    expect((await ask(second, bob, "POST", `/v1/operations/${id}/confirm`)).status).toBe(200);
    expect([await statusOf(second, ann), await statusOf(second, bob)]).toEqual([401, 200]);
    await program.stop(second);
    const third = await program.start(first.stateDir);
    expect([await statusOf(third, ann), await statusOf(third, bob)]).toEqual([401, 200]);
    expect(await recorded(third)).toBe(api("", bob));
    await program.stop(third);
  });

  test("by request: proved by a signature, and confirmed by the first connection of the new one", async () => {
    const daemon = await claimed();
    const { nonce } = (await ask(daemon, ann, "GET", "/v1/ca/rotate")).json;
    const operatorCA = bob.ca.certificate;
    const body = { operatorCA, proof: signProof(String(nonce), bob.credentials) };
    const made = await ask(daemon, ann, "POST", "/v1/ca/rotate", body);
    expect([made.status, made.json["status"]]).toEqual([200, "awaiting-confirmation"]);
    expect(await statusOf(daemon, ann)).toBe(200);
    expect([await statusOf(daemon, bob), await statusOf(daemon, ann)]).toEqual([200, 401]);
    expect(await over(daemon, String(made.json["operation"]))).toMatchObject({ phase: "succeeded" });
    expect(await recorded(daemon)).toBe(source1(daemon));
    expect(source1(daemon)).toContain(operatorCA.split("\n")[1] ?? "no CA");
    await program.stop(daemon);
  });
});
