import { describe, expect, test } from "bun:test";
import { stringify } from "yaml";
import { askMembership, askReadiness } from "../k0s/membership/driver.ts";
import { appError } from "../kit/app-error.ts";
import type { HttpRequest } from "../kit/ports.ts";
import { err, ok } from "../kit/result.ts";
import { memoryState } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { membershipWatcher, tellLost } from "./membership-watch.ts";

const PEM = "/var/lib/k0s/kubelet/pki/kubelet-client-current.pem";
const part = (label: string): string => `-----BEGIN ${label}-----\n${label}\n-----END ${label}-----`;
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** As the kubelet writes it once it has its certificate. */
const KUBELET_CONF = stringify({
  clusters: [{ cluster: { server: "https://192.0.2.9:6443", "certificate-authority-data": base64("the CA") } }],
  users: [{ user: { "client-certificate": PEM, "client-key": PEM } }],
});

type Said = number | "tls" | "tls-expired" | "refused" | Readonly<Record<string, unknown>>;

function machine(files: Readonly<Record<string, string>> = {}) {
  const asked: HttpRequest[] = [];
  const cluster = { says: 200 as Said };
  const host = fakeHost({
    nowMs: Date.UTC(2026, 4, 1),
    files: {
      "/var/lib/k0s/kubelet.conf": KUBELET_CONF,
      [PEM]: `${part("CERTIFICATE")}\n${part("EC PRIVATE KEY")}\n`,
      ...files,
    },
    http: async (request) => {
      asked.push(request);
      const { says } = cluster;
      if (typeof says === "string") return err(appError(says, "no answer"));
      const body = typeof says === "number" ? "" : JSON.stringify(says);
      const status = typeof says === "number" ? says : 200;
      return ok({ status, body: new TextEncoder().encode(body), url: request.url });
    },
  });
  return { host, asked, cluster };
}

describe("asking as the kubelet does", () => {
  test("with its certificate and key, for its own Node, trusting the cluster's CA alone", async () => {
    const { host, asked } = machine();
    expect(await askMembership(host, "w1")).toBe("known");
    expect(asked[0]).toMatchObject({
      url: "https://192.0.2.9:6443/api/v1/nodes/w1",
      trust: "the CA",
      isTrustAlone: true,
      identity: { certificate: part("CERTIFICATE") },
    });
    expect(asked[0]?.identity?.privateKey.reveal()).toBe(part("EC PRIVATE KEY"));
    expect(asked[0]).not.toHaveProperty("bearer");
  });

  test("what says nothing of membership is not taken for an answer", async () => {
    for (const says of [403, 500, 503, "refused", "tls-expired"] as const) {
      const { host, cluster } = machine();
      cluster.says = says;
      expect(await askMembership(host, "w1")).toBeUndefined();
    }
    const { host, asked } = machine({ "/var/lib/k0s/kubelet.conf": "half: [" });
    expect(await askMembership(host, "w1")).toBeUndefined();
    expect(asked).toEqual([]);
  });
});

const nodeThatIs = (status: string, message: string): Said => ({
  kind: "Node",
  status: {
    conditions: [
      { type: "MemoryPressure", status: "False", message: "enough" },
      { type: "Ready", status, message },
    ],
  },
});

describe("whether this node is ready, which k0s itself does not know", () => {
  const NO_NETWORK = "container runtime network not ready: cni plugin not initialized";
  test.each([
    ["ready", nodeThatIs("True", "kubelet is posting ready status"), { isReady: true }],
    ["not ready: why", nodeThatIs("False", NO_NETWORK), { isReady: false, why: NO_NETWORK }],
    ["silent", nodeThatIs("Unknown", ""), { isReady: false, why: "the kubelet has not said why" }],
    ["without a condition", { kind: "Node" }, { isReady: false, why: "the kubelet has not said why" }],
    ["gone", 404, { isReady: false, why: "the cluster has no Node of this name" }],
    ["refused", 401, { why: "the API server answered with status 401" }],
    ["unanswered", "refused", { why: "no answer" }],
    ["something else", { kind: "Status" }, { why: "the API server answered with something that is no Node" }],
  ] satisfies readonly (readonly [string, Said, unknown])[])("%s", async (_name, says, is) => {
    const { host, cluster } = machine();
    cluster.says = says;
    expect(await askReadiness(host, "w1")).toEqual(is);
  });

  test("a node without a kubelet is neither, and nobody is asked", async () => {
    const { host, asked } = machine({ "/var/lib/k0s/kubelet.conf": "half: [" });
    expect(await askReadiness(host, "w1")).toBeUndefined();
    expect(asked).toEqual([]);
  });
});

async function watched(plan: readonly Said[], unit: "k0sworker" | "k0scontroller" = "k0sworker") {
  const { host, cluster } = machine();
  const state = memoryState();
  const ending = new AbortController();
  const told: (string | undefined)[] = [];
  let look = 0;
  cluster.says = plan[0] ?? 200;
  const sleep = async (ms: number): Promise<void> => {
    told.push(tellLost(watcher.lost()));
    await host.clock.sleep(ms);
    look += 1;
    cluster.says = plan[look] ?? 200;
    if (look === plan.length) ending.abort();
  };
  const watcher = membershipWatcher({
    host: { ...host, clock: { ...host.clock, sleep } },
    state,
    node: () => ({ name: "w1", unit }),
    memoryPath: "/run/corium/membership.json",
    say: (line) => {
      throw new Error(line);
    },
  });
  await watcher.watch(ending.signal);
  return { told, events: state.events.last().map(({ severity, message }) => `${severity} ${message}`) };
}

describe("B086: a node that the cluster does not know any more", () => {
  test("a deleted Node is told with the time since when, and how the kubelet comes back", async () => {
    const { told, events } = await watched([200, 200, 404, 404, 404, 200, 200]);
    expect(told.slice(0, 3)).toEqual([undefined, undefined, undefined]);
    expect(told[3]).toBe(
      "the cluster does not know this node any more: its Node object was deleted (since 2026-05-01T00:03:00.000Z); the kubelet registers when it starts: `cctl restart NODE k0sworker`",
    );
    expect(told[4]).toBe(told[3] ?? "");
    expect(told.at(-1)).toBeUndefined();
    expect(events.map((line) => line.split(":")[0])).toEqual([
      "error the cluster does not know this node any more",
      "info the cluster knows this node again",
    ]);
  });

  test("a certificate that the cluster refuses needs a reset and a new token, and says so", async () => {
    const { told } = await watched([401, 401]);
    expect(told.at(-1)).toContain("the cluster refuses this node");
    expect(told.at(-1)).toContain("cctl reset");
    expect(told.at(-1)).toContain("cctl join-token");
    expect((await watched(["tls", "tls"])).told.at(-1)).toContain("can't prove to be of the cluster");
  });

  test("one look, a cable, a controller that restarts: nothing is said", async () => {
    expect((await watched([200, 404, 200, "refused", 503, 200, 401])).events).toEqual([]);
  });

  test("on a controller it is k0scontroller that brings it back", async () => {
    expect((await watched([404, 404], "k0scontroller")).told.at(-1)).toContain("`cctl restart NODE k0scontroller`");
  });
});
