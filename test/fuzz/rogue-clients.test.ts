/**
 * Nobody is let in who must not be, and nobody is taken for another: against the compiled binary, all kinds of clients
 * at once. `CORIUM_ROGUE_TRIES=2000` is the long form; it is run again for each new version of the runtime, which
 * accepted foreign certificates at random before.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { compile } from "../../iso/compile.ts";
import { nodePaths } from "../../kit/paths.ts";
import { parseAuthority } from "../../pki/authority.ts";
import { readClient } from "../../pki/verify.ts";
import type { State } from "../../state/open.ts";
import { openState } from "../../state/open.ts";
import type { Cast } from "./rogues.ts";
import { makeCast } from "./rogues.ts";
import { request } from "./tls-client.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const TRIES = Number(process.env["CORIUM_ROGUE_TRIES"] ?? 60);
const AT_ONCE = 24;
const TIMEOUT_MS = 60_000 + TRIES * 500;

const folder = mkdtempSync(join(tmpdir(), "corium-rogues-"));
const stateDir = join(folder, "state");
let cast: Cast;
let daemon: Bun.Subprocess<"ignore", "ignore", "pipe">;
let port = 0;

const open = (): State => {
  const state = openState(nodePaths(stateDir));
  if (!state.ok) throw new Error(state.error.message);
  return state.value;
};

beforeAll(async () => {
  const corium = join(folder, "corium");
  compile(join(import.meta.dir, "../../main.ts"), corium, "1.2.3");
  const nowMs = Date.now();
  cast = await makeCast(nowMs);
  const authority = parseAuthority(cast.authority.certificate);
  if (!authority.ok) throw new Error(authority.error.message);
  const state = open();
  const { pem, fingerprint } = authority.value;
  state.claim.record({ operatorCA: pem, fingerprint, atMs: nowMs, by: "enroll" });
  const revoked = readClient(new Uint8Array(derOf(cast.revoked.certificate)), authority.value);
  if (!revoked.ok) throw new Error(revoked.error.message);
  state.claim.revoke(revoked.value.issuer, revoked.value.serial, nowMs);
  state.close();
  daemon = Bun.spawn([corium, "serve", "--state-dir", stateDir, "--address", "127.0.0.1", "--port", "0"], {
    env: { PATH: process.env["PATH"] ?? "", TMPDIR: folder },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let said = "";
  for await (const chunk of daemon.stderr) {
    said += new TextDecoder().decode(chunk);
    port = Number(/listening on port (\d+)/.exec(said)?.[1] ?? 0);
    if (port > 0) break;
  }
  if (port === 0) throw new Error(said);
}, 120_000);

afterAll(async () => {
  daemon?.kill();
  await daemon?.exited;
  rmSync(folder, { recursive: true, force: true });
});

const derOf = (pem: string): Buffer => Buffer.from(pem.replace(/-----[A-Z ]+-----/g, ""), "base64");

/** All of them, `AT_ONCE` at any time, in an order that mixes the kinds. */
async function inParallel(jobs: readonly (() => Promise<void>)[]): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let job = jobs[next++]; job !== undefined; job = jobs[next++]) await job();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

test(
  "B148, B150, B151, B156: rogue, expired, self-signed, revoked and missing certificates beside good ones: none accepted, none mixed up",
  async () => {
    const counts = new Map<string, number>();
    const count = (key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
    const sessions: Buffer[] = [];
    const before = performance.now();
    const jobs = Array.from({ length: TRIES }, (_, round) => [
      ...cast.rogues.map(({ kind, credentials, reason }) => async () => {
        const [first, second] = await request({ port, ...(credentials === undefined ? {} : { credentials }) }, [
          "GET /v1/operations",
          "POST /v1/lifecycle/reboot",
        ]);
        for (const answer of [first, second]) {
          expect([kind, answer?.status, (JSON.parse(answer?.body ?? "{}") as { reason: string }).reason]).toEqual([
            kind,
            401,
            reason,
          ]);
        }
        count(kind);
      }),
      ...cast.good.map(({ name, role, credentials }) => async () => {
        const onSession = (session: Buffer): void => void sessions.push(session);
        const answers = await request({ port, credentials, onSession }, [
          "GET /v1/operations",
          `POST /v1/operations/${name}-${round}/retry`,
          "GET /v1/audit?since=999999999",
        ]);
        const isAdmin = role === "admin";
        expect([name, ...answers.map(({ status }) => status)]).toEqual([
          name,
          200,
          isAdmin ? 404 : 403,
          isAdmin ? 200 : 403,
        ]);
        count(`good: ${name}`);
      }),
      async () => {
        // No session was ever given out, so that this one is of another server's making: it must not be taken up.
        const session = sessions.at(-1);
        const [answer] = await request({ port, ...(session === undefined ? {} : { session }) }, ["GET /v1/operations"]);
        expect(answer?.status).toBe(401);
        count("a session taken up without a certificate");
      },
    ]).flat();
    await inParallel(jobs);
    for (const [kind, number] of counts) expect([kind, number]).toEqual([kind, TRIES]);
    expect(sessions).toEqual([]);
    const seconds = ((performance.now() - before) / 1000).toFixed(1);
    const residentKiB = Number(/VmRSS:\s+(\d+)/.exec(await Bun.file(`/proc/${daemon.pid}/status`).text())?.[1]);
    process.stderr.write(
      `${jobs.length} clients of ${counts.size} kinds, ${TRIES} tries each, in ${seconds} s; the daemon holds ${Math.round(residentKiB / 1024)} MiB\n`,
    );
    expect(residentKiB).toBeLessThan(512 * 1024);

    // What each of the good ones asked for is in the audit under its own name and no other's.
    const state = open();
    const audited = state.audit.last(10_000_000).filter(({ route }) => route.endsWith("/retry"));
    state.close();
    expect(audited).toHaveLength(TRIES * cast.good.length);
    for (const { route, requester } of audited) {
      const name = /operations\/(\w+)-\d+\/retry/.exec(route)?.[1];
      expect(requester.kind === "operator" && requester.name).toBe(name ?? "");
    }
  },
  TIMEOUT_MS,
);

test.skipIf(Bun.which("openssl") === null)(
  "openssl gets no session either, and TLS 1.2 no connection [needs openssl]",
  async () => {
    const files = { cert: join(folder, "c.pem"), key: join(folder, "c.key"), session: join(folder, "session.pem") };
    const good = cast.good[0]?.credentials;
    await Bun.write(files.cert, good?.certificate ?? "");
    await Bun.write(files.key, good?.privateKey ?? "");
    const openssl = async (...more: string[]): Promise<string> => {
      const argv = [
        "openssl",
        "s_client",
        "-connect",
        `127.0.0.1:${port}`,
        "-cert",
        files.cert,
        "-key",
        files.key,
        ...more,
      ];
      const child = Bun.spawn(argv, {
        stdin: new TextEncoder().encode("GET /v1/health HTTP/1.0\r\n\r\n"),
        stdout: "pipe",
        stderr: "pipe",
      });
      return (await child.stdout.text()) + (await child.stderr.text());
    };
    expect(await openssl("-quiet", "-sess_out", files.session)).toContain("200 OK");
    expect(await Bun.file(files.session).exists()).toBe(false);
    expect(await openssl("-tls1_2")).toContain("alert protocol version");
  },
);

test("the revocation of a certificate ends what its open connection may do", async () => {
  const [, , victim] = cast.good;
  const authority = parseAuthority(cast.authority.certificate);
  if (victim === undefined || !authority.ok) throw new Error("no cast");
  const identity = readClient(new Uint8Array(derOf(victim.credentials.certificate)), authority.value);
  if (!identity.ok) throw new Error("unreadable");
  let hasRevoked = false;
  const onAnswer = (): void => {
    if (hasRevoked) return;
    hasRevoked = true;
    const state = open();
    state.claim.revoke(identity.value.issuer, identity.value.serial, Date.now());
    state.close();
  };
  const health = "GET /v1/health";
  const answers = await request({ port, credentials: victim.credentials, onAnswer }, [health, health]);
  expect(answers.map(({ status }) => status)).toEqual([200, 401]);
});
