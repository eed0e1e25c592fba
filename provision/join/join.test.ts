import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { realRandom } from "../../host/random.ts";
import { formatError } from "../../kit/app-error.ts";
import { Secret } from "../../kit/secret.ts";
import { mintAuthority } from "../../pki/driver.ts";
import type { KeyPair } from "../../pki/model.ts";
import { type FakeCluster, fakeCluster } from "../../test/support/fake-cluster.ts";
import { fakeHost } from "../../test/support/fake-host.ts";
import { joinToken } from "../../test/support/first-boot.ts";
import { askCluster } from "./driver.ts";
import { type Joining, judgeMembers, judgeNode } from "./judge.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const own: Joining = { node: "n2", machineId: "mine", systemUuid: "ABCD-1", peerAddress: "192.0.2.12" };
let authority: KeyPair;
beforeAll(async () => {
  authority = await mintAuthority({ commonName: "cluster", nowMs: Date.UTC(2026, 0, 1), random: realRandom });
});

async function ask(role: "worker" | "controller", change: (cluster: FakeCluster) => void) {
  const cluster = fakeCluster(authority);
  change(cluster);
  const host = fakeHost({ http: cluster.http });
  const [user, port] = role === "worker" ? ["kubelet-bootstrap", 6443] : ["controller-bootstrap", 9443];
  const text = joinToken(user, authority.certificate, `https://192.0.2.10:${port}`);
  const messages: string[] = [];
  const asked = await askCluster(host, { token: new Secret("join.token", text), joining: own }, (message) => {
    messages.push(message);
  });
  const said = asked.ok ? (asked.value ?? "free") : formatError(asked.error);
  expect(said + messages.join("\n")).not.toContain("0123456789abcdef");
  return { said, messages, asked: cluster.asked };
}

describe("asking the cluster with the token", () => {
  test("a worker has a certificate signed and looks at the Node of its name, and at nothing else", async () => {
    const { said, asked } = await ask("worker", () => undefined);
    expect(said).toBe("free");
    const base = "https://192.0.2.10:6443";
    expect(asked).toEqual([
      `POST ${base}/apis/certificates.k8s.io/v1/certificatesigningrequests`,
      `GET ${base}/apis/certificates.k8s.io/v1/certificatesigningrequests/corium-join-x`,
      `GET ${base}/api/v1/nodes/n2`,
    ]);
  });

  test("a controller looks at nodes and members of etcd, and writes nothing", async () => {
    const { said, asked } = await ask("controller", (cluster) => (cluster.members = []));
    expect(said).toBe("free");
    expect(asked).toEqual([
      "GET https://192.0.2.10:9443/v1beta1/ca",
      "GET https://192.0.2.10:6443/api/v1/nodes/n2",
      "GET https://192.0.2.10:6443/apis/etcd.k0sproject.io/v1beta1/etcdmembers",
    ]);
  });

  test("a server of another cluster than the token's is refused, and is not told the token", async () => {
    for (const role of ["worker", "controller"] as const) {
      const { said, asked } = await ask(role, (cluster) => (cluster.isForeign = true));
      expect(said).toContain("can't prove to be of the cluster that the join token is for");
      expect(asked).toHaveLength(1);
    }
  });

  test("a controller whose certificate has ended was waited for: time can't mend it", async () => {
    for (const role of ["worker", "controller"] as const) {
      const { said, messages } = await ask(role, (cluster) => (cluster.isExpired = true));
      expect(said).toContain("has expired");
      expect(said).toContain("restart k0s on that controller");
      expect(messages).toEqual([]);
    }
  });

  test("what it may not ask does not keep it from joining: it is a warning", async () => {
    for (const role of ["worker", "controller"] as const) {
      const { said } = await ask(role, (cluster) => (cluster.status = 403));
      expect(said).toContain("whether the cluster has a node 'n2' already could not be asked");
      expect(said).toContain("status 403");
    }
  });

  test("a controller that is busy is asked again", async () => {
    let count = 0;
    const { said, messages } = await ask("worker", (cluster) => {
      Object.defineProperty(cluster, "status", { get: () => (++count < 3 ? 503 : undefined) });
    });
    expect(said).toBe("free");
    expect(messages[0]).toBe("waiting for the cluster to answer: https://192.0.2.10:6443 answered with status 503");
  });
});

const node = (status: object): string => JSON.stringify({ kind: "Node", status });
const ready = (status: string): object => ({ conditions: [{ type: "Ready", status }] });
const verdict = (judged: ReturnType<typeof judgeNode>): string =>
  judged === undefined ? "not understood" : judged.ok ? "free" : judged.error.message;

describe("a Node of the name that one wants", () => {
  test("its own is free for a machine that was reset, and for one that was installed anew and is not heard", () => {
    expect(verdict(judgeNode(node({ nodeInfo: { machineID: "mine" }, ...ready("True") }), own))).toBe("free");
    const anew = { nodeInfo: { machineID: "before", systemUUID: "abcd-1" } };
    expect(verdict(judgeNode(node({ ...anew, ...ready("Unknown") }), own))).toBe("free");
    // Boards of one batch may share the UUID: this one lives.
    expect(verdict(judgeNode(node({ ...anew, ...ready("True") }), own))).toContain("machine before, ready");
  });
  test("one that no kubelet has ever reported is nobody's; what is no Node is not understood", () => {
    expect(verdict(judgeNode(node({}), own))).toBe("free");
    expect(verdict(judgeNode("<html>", own))).toBe("not understood");
  });
  test("B055: another machine's is taken, also when it is off", () => {
    const other = node({ nodeInfo: { machineID: "x", systemUUID: "y" }, ...ready("Unknown") });
    expect(verdict(judgeNode(other, own))).toBe("the cluster has a node 'n2' already: machine x, not ready");
  });
});

describe("members of etcd", () => {
  const members = (...items: readonly object[]) => judgeMembers(JSON.stringify({ items }), own);
  const member = (name: string, peerAddress: string, joined?: string): object => ({
    metadata: { name },
    status: { peerAddress, ...(joined === undefined ? {} : { conditions: [{ type: "Joined", status: joined }] }) },
  });
  test("others are none of our business, and neither is one that has left", () => {
    expect(verdict(members(member("n1", "192.0.2.11", "True"), member("n2", "192.0.2.20", "False")))).toBe("free");
  });
  test("what an earlier life of this machine left at its address is named, with the way to take it out", () => {
    const left = members(member("old", "192.0.2.12", "True"));
    if (left?.ok !== false) throw new Error("it was taken for free");
    expect(left.error.hint).toContain("left behind by an earlier life");
    expect(left.error.hint).toContain("k0s etcd leave --peer-address 192.0.2.12");
  });
  test("a member of this name without an address was to be taken out by a command without one", () => {
    const taken = members(member("n2", ""));
    if (taken?.ok !== false) throw new Error("it was taken for free");
    expect(taken.error.hint).not.toContain("k0s etcd leave");
    expect(taken.error.hint).toContain("`k0s kubectl delete etcdmember n2`");
  });
});
