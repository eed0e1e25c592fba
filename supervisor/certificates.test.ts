import { beforeAll, describe, expect, test } from "bun:test";
import type { NodeAnswer } from "../api/contract.ts";
import { metricsOf } from "../api/metrics.ts";
import { statusText } from "../cctl/text/status.ts";
import { realRandom } from "../host/random.ts";
import { nodePaths } from "../kit/paths.ts";
import { issueClient, mintAuthority } from "../pki/driver.ts";
import type { KeyPair } from "../pki/model.ts";
import { memoryState } from "../state/open.ts";
import type { State } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { decideCertificates, watchCertificates } from "./certificate-watch.ts";
import { type CertificateEnd, DAY_MS, readCertificateEnds, tellEnds } from "./certificates.ts";
import { openServerIdentity } from "./server-identity.ts";

const paths = nodePaths();
const BORN_MS = Date.UTC(2026, 0, 1);
const YEAR_MS = 365 * DAY_MS;
let authority: KeyPair;
let leaf: KeyPair;

const mintLeaf = (nowMs: number): Promise<KeyPair> =>
  issueClient({ authority, name: "x", role: "admin", nowMs, lifetimeMs: YEAR_MS, random: realRandom });

beforeAll(async () => {
  authority = await mintAuthority({ commonName: "ca", nowMs: BORN_MS, random: realRandom });
  leaf = await mintLeaf(BORN_MS);
});

/** A controller with a kubelet, claimed, as it was made on BORN_MS. */
async function node(nowMs: number) {
  const host = fakeHost({
    nowMs: BORN_MS,
    files: {
      "/var/lib/k0s/pki/ca.crt": authority.certificate,
      "/var/lib/k0s/pki/ca.key": authority.privateKey,
      "/var/lib/k0s/pki/server.crt": leaf.certificate,
      "/var/lib/k0s/pki/admin.crt": leaf.certificate,
      "/var/lib/k0s/pki/half.crt": "-----BEGIN CERTIFICATE-----\nMII",
      "/var/lib/k0s/pki/etcd/peer.crt": leaf.certificate,
      "/var/lib/k0s/kubelet/pki/kubelet-client-current.pem": leaf.certificate + leaf.privateKey,
    },
  });
  await openServerIdentity(host, paths, "n1");
  const state = memoryState();
  state.claim.record({ operatorCA: authority.certificate, fingerprint: "SHA256:x", atMs: 1, by: "enroll" });
  host.setNow(nowMs);
  return { host, state, read: () => readCertificateEnds(host, paths, state), say: () => undefined };
}

const daysBefore = (days: number): number => BORN_MS + YEAR_MS - days * DAY_MS + 1000;

describe("B188: certificates and their ends", () => {
  test("every certificate is found, with what its end means; one that is half written is left out", async () => {
    const { read } = await node(BORN_MS);
    const ends = await read();
    expect(ends.map(({ name, kind }) => `${name}: ${kind}`)).toEqual([
      "api: api",
      "operator CA: operator-ca",
      "k0s admin: k0s",
      "k0s ca: cluster-ca",
      "k0s server: k0s",
      "etcd peer: k0s",
      "kubelet client: kubelet",
    ]);
    expect(JSON.stringify(ends)).not.toContain("PRIVATE");
  });

  test("off for thirteen months: k0s's have ended and say that its start renews them, the API's and the CA's have not", async () => {
    const nowMs = BORN_MS + 396 * DAY_MS;
    const { read } = await node(nowMs);
    const ended = (await read()).filter(({ notAfterMs }) => notAfterMs <= nowMs);
    const told = tellEnds(ended, nowMs);
    expect(told).toHaveLength(2);
    expect(told[0]).toBe(
      "k0s admin, k0s server, etcd peer: ended on 2027-01-01; k0s renews it when it starts: `cctl restart NODE k0scontroller`",
    );
    expect(told[1]).toStartWith("kubelet client: ended on 2027-01-01; the kubelet renews it by itself");
  });

  test("60, 30 and 7 days before, and at the end, it is an event, once each, also over restarts", async () => {
    const made = await node(daysBefore(61));
    const heard = async (nowMs: number): Promise<readonly string[]> => {
      const before = made.state.events.last().length;
      made.host.setNow(nowMs);
      const stop = new AbortController();
      // Three looks of a daemon that is then restarted.
      const until = made.host.clock.monotonicMs() + 3 * 3_600_000;
      const sleep = async (ms: number): Promise<void> => {
        await made.host.clock.sleep(ms);
        made.host.setNow(nowMs);
        if (made.host.clock.monotonicMs() > until) stop.abort();
      };
      await watchCertificates({ ...made, host: { ...made.host, clock: { ...made.host.clock, sleep } } }, stop.signal);
      const events = made.state.events.last().slice(before);
      return events.map(({ severity, message }) => `${severity} ${message.split(";")[0]}`);
    };
    const k0s = "certificate k0s admin, k0s server, etcd peer";
    expect(await heard(daysBefore(61))).toEqual([]);
    expect(await heard(daysBefore(60))).toEqual([`warning ${k0s}: ends on 2027-01-01, in 59 days`]);
    expect(await heard(daysBefore(40))).toEqual([]);
    expect(await heard(daysBefore(30))).toEqual([
      `warning ${k0s}: ends on 2027-01-01, in 29 days`,
      "warning certificate kubelet client: ends on 2027-01-01, in 29 days",
    ]);
    expect((await heard(daysBefore(7))).map((line) => line.split(" ")[0])).toEqual(["error", "error"]);
    expect((await heard(daysBefore(0)))[0]).toBe(`error ${k0s}: ended on 2027-01-01`);
    expect(await heard(daysBefore(-1))).toEqual([]);
    // k0s was restarted: the next year's are other certificates.
    const next = await mintLeaf(daysBefore(-1));
    for (const name of ["admin", "server", "etcd/peer"])
      made.host.put(`/var/lib/k0s/pki/${name}.crt`, next.certificate);
    expect(await heard(daysBefore(-2))).toEqual([]);
    expect((await heard(daysBefore(-2) + YEAR_MS - 50 * DAY_MS))[0]).toStartWith(`warning ${k0s}: ends on 2028`);
  });

  test("a machine that starts after a year hears nothing of what k0s is about to renew", async () => {
    const made = await node(BORN_MS + 2 * YEAR_MS);
    const stop = new AbortController();
    const sleeps: number[] = [];
    const sleep = async (ms: number): Promise<void> => {
      sleeps.push(ms);
      if (sleeps.length === 1) {
        const next = await mintLeaf(made.host.clock.nowMs());
        for (const path of ["pki/admin.crt", "pki/server.crt", "pki/etcd/peer.crt"])
          made.host.put(`/var/lib/k0s/${path}`, next.certificate);
        made.host.drop("/var/lib/k0s/kubelet/pki/kubelet-client-current.pem");
      } else stop.abort();
    };
    await watchCertificates({ ...made, host: { ...made.host, clock: { ...made.host.clock, sleep } } }, stop.signal);
    expect(sleeps[0]).toBeGreaterThan(600_000);
    expect(made.state.events.last()).toEqual([]);
  });

  test("one that was off from 61 days before to 5 days before hears of it once", () => {
    const end: CertificateEnd = { name: "operator CA", kind: "operator-ca", notAfterMs: BORN_MS };
    const { events, told } = decideCertificates({}, [end], BORN_MS - 5 * DAY_MS);
    expect(events).toHaveLength(1);
    expect(events[0]?.message).toContain("pin a new operator CA at its console");
    expect(decideCertificates(told, [end], BORN_MS - 4 * DAY_MS).events).toEqual([]);
  });

  test("status text shows those of the next sixty days, alike ones in one line; metrics have all", () => {
    const one = { notAfter: "2027-01-01T00:00:00.000Z", daysLeft: 12, renewal: "k0s renews it when it starts" };
    const answer = {
      hostname: "n1",
      phase: "in-service",
      os: { name: "Corium", kernel: "6", booted: { version: "1" } },
      health: { verdict: "healthy", uptimeSeconds: 1, checks: [] },
      management: {},
      storage: { arrays: [], mounts: [] },
      overlay: [],
      config: { state: "in-sync", reasons: [] },
      certificates: [
        { ...one, name: "api" },
        { ...one, name: "k0s server" },
        { ...one, name: "etcd peer" },
        { ...one, name: "operator CA", daysLeft: 900 },
      ],
    } as unknown as NodeAnswer;
    const lines = statusText(answer, (text) => text).split("\n");
    expect(lines.filter((line) => line.startsWith("certificate"))).toEqual([
      "certificate  k0s server, etcd peer in 12 days (2027-01-01): k0s renews it when it starts",
    ]);
    expect(metricsOf(answer)).toContain(
      'corium_certificate_not_after_timestamp_seconds{certificate="operator CA"} 1798761600\n',
    );
  });
});

test("a node without a claim and without k0s names its own certificate alone", async () => {
  const host = fakeHost({ nowMs: BORN_MS });
  await openServerIdentity(host, paths, "n1");
  const state: Pick<State, "claim"> = memoryState();
  expect((await readCertificateEnds(host, paths, state)).map(({ name }) => name)).toEqual(["api"]);
});
