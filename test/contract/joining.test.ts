// budget: 180 s
/** What a join token may ask before anything of this machine is changed, over the real wire; see provision/join/. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { stringify } from "yaml";
import { readJoinToken } from "../../config/token.ts";
import { realHost } from "../../host/real.ts";
import { formatError } from "../../kit/app-error.ts";
import { Secret } from "../../kit/secret.ts";
import { askMembership } from "../../k0s/membership/driver.ts";
import { askCluster } from "../../provision/join/driver.ts";
import type { Joining } from "../../provision/join/judge.ts";
import { testNeeding } from "../runner/needs.ts";
import { until } from "../support/until.ts";
import { isReal, openProgram, type Program, type Running } from "./program.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const CONFIG = "/etc/k0s/k0s.yaml";
const address = `127.9.${process.pid % 250}.1`;
const env = { K0S_SIM_API: `https://${address}:6443` };
const host = realHost();
let start: () => void;
let k0s: Program;
let running: Running;

beforeAll(async () => {
  if (isReal) return;
  k0s = await openProgram();
  const spec = {
    api: { address, onlyBindToAddress: true },
    storage: { type: "etcd", etcd: { peerAddress: address, extraArgs: { name: "c1" } } },
  };
  k0s.write(CONFIG, stringify({ apiVersion: "k0s.k0sproject.io/v1beta1", kind: "ClusterConfig", spec }));
  k0s.write("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  const kubelet = "--kubelet-extra-args=--hostname-override=w1";
  start = () => {
    running = k0s.start(["controller", "--config", CONFIG, "--enable-worker", "--ignore-pre-flight-checks", kubelet], {
      env,
    });
  };
  start();
  await until("the node and the member", async () => {
    const all = await Promise.all([
      k0s.run(["kubectl", "get", "node", "w1", "-o", "jsonpath={.status.nodeInfo.machineID}"], { env }),
      k0s.run(["kubectl", "get", "etcdmembers.etcd.k0sproject.io", "c1", "-o", "name"], { env }),
    ]);
    return all.every(({ exitCode, stdout }) => exitCode === 0 && stdout !== "");
  });
});
afterAll(() => k0s?.dispose());

const token = async (role: "worker" | "controller"): Promise<string> =>
  (await k0s.run(["token", "create", "--role", role], { env })).stdout.trim();

async function ask(text: string, joining: Partial<Joining> & { readonly node: string }): Promise<string> {
  const about = { token: new Secret("join.token", text), joining: { machineId: "another", ...joining } };
  const asked = await askCluster(host, about, () => undefined);
  return asked.ok ? (asked.value ?? "free") : formatError(asked.error);
}

describe("with a join token", () => {
  testNeeding(["the stand-in"], "B055, B056: a worker's finds out whether a name is free", async () => {
    const given = await token("worker");
    expect(await ask(given, { node: "w2" })).toBe("free");
    expect(await ask(given, { node: "w1" })).toContain(
      "the cluster has a node 'w1' already: machine 0123456789abcdef0123456789abcdef",
    );
    // The machine itself, after a reset.
    expect(await ask(given, { node: "w1", machineId: "0123456789abcdef0123456789abcdef" })).toBe("free");
  });

  testNeeding(["the stand-in"], "B056: a controller's finds out about nodes and members of etcd", async () => {
    const given = await token("controller");
    expect(await ask(given, { node: "c2", peerAddress: "127.9.0.2" })).toBe("free");
    expect(await ask(given, { node: "c1" })).toContain(`etcd has a member 'c1' at ${address} already`);
    expect(await ask(given, { node: "c2", peerAddress: address })).toContain("left behind by an earlier life");
    expect(await ask(given, { node: "w1" })).toContain("the cluster has a node 'w1' already");
  });

  testNeeding(["the stand-in"], "B087: one that was revoked is told apart from everything else", async () => {
    for (const role of ["worker", "controller"] as const) {
      const given = await token(role);
      await k0s.run(["token", "invalidate", readJoinToken(given)?.id ?? ""], { env });
      expect(await ask(given, { node: "n9" })).toContain("the cluster refuses the join token (401)");
    }
  });

  testNeeding(["the stand-in"], "a worker's alone reads no nodes", async () => {
    const given = readJoinToken(await token("worker"));
    const answer = await host.http({
      url: `https://${address}:6443/api/v1/nodes`,
      timeoutMs: 10_000,
      maxBytes: 65_536,
      trust: given?.certificateAuthority ?? "",
      isTrustAlone: true,
      bearer: given?.bearer ?? new Secret("none", ""),
    });
    expect(answer.ok && answer.value.status).toBe(403);
  });

  testNeeding(
    ["the stand-in"],
    "the object of a member that a reset deletes stays away, and its name is free",
    async () => {
      const gone = ["--ignore-not-found", "--wait=false"];
      const get = ["kubectl", "get", "etcdmembers.etcd.k0sproject.io", "c1"];
      // It makes its object once, when it starts.
      expect((await k0s.run(get, { env })).exitCode).toBe(0);
      for (let time = 0; time < 2; time += 1) {
        const ran = await k0s.run(["kubectl", "delete", "etcdmembers.etcd.k0sproject.io", "c1", ...gone], { env });
        expect(ran.exitCode).toBe(0);
      }
      const found = await k0s.run(get, { env });
      expect(found.stderr).toContain("NotFound");
      expect(await ask(await token("controller"), { node: "c1" })).toBe("free");
    },
  );

  testNeeding(["the stand-in"], "B086: a Node that was deleted stays away until the kubelet starts again", async () => {
    const readText: typeof host.files.readText = (path, options) => host.files.readText(k0s.host(path), options);
    const node = { ...host, files: { ...host.files, readText } };
    const membership = (): Promise<string | undefined> =>
      askMembership({ ...node, http: (request) => host.http({ ...request, url: here(request.url) }) }, "w1");
    // The admin's kubeconfig, which a controller's kubelet has here, says localhost.
    const here = (url: string): string => url.replace("localhost", address);
    expect(await membership()).toBe("known");
    await k0s.run(["kubectl", "delete", "node", "w1"], { env });
    expect(await membership()).toBe("deleted");
    await running.stop();
    start();
    await until("the node", async () => (await membership()) === "known");
  });

  testNeeding(["the stand-in"], "B055: a worker's finds out from a controller that does not lead, too", async () => {
    const second = `127.9.${process.pid % 250}.2`;
    const follower = await openProgram();
    try {
      const spec = {
        api: { address: second, onlyBindToAddress: true },
        storage: { type: "etcd", etcd: { peerAddress: second, extraArgs: { name: "c3" } } },
      };
      follower.write(CONFIG, stringify({ apiVersion: "k0s.k0sproject.io/v1beta1", kind: "ClusterConfig", spec }));
      follower.write("/etc/k0s/token", await token("controller"));
      const its = { env: { K0S_SIM_API: `https://${second}:6443` } };
      follower.start([
        "controller",
        "--config",
        CONFIG,
        "--ignore-pre-flight-checks",
        "--token-file",
        "/etc/k0s/token",
      ]);
      const given = await until("a token of it", async () => {
        const made = await follower.run(["token", "create", "--role", "worker"], its);
        return made.exitCode === 0 && made.stdout.trim();
      });
      expect(readJoinToken(given)?.server).toContain(second);
      // A follower of the stand-in knows half a second later what was written.
      const answer = await until("it knows its token", async () => {
        const said = await ask(given, { node: "w1" });
        return !said.includes("(401)") && said;
      });
      expect(answer).toContain("the cluster has a node 'w1' already: machine 0123");
    } finally {
      await k0s.run(["etcd", "leave", "--peer-address", second], { env });
      await follower.dispose();
    }
  });
});
