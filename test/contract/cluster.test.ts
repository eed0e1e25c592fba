// budget: 420 s
/** Several controllers of the stand-in on the loopback: joining, one leader, its own charts, a lost majority. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { stringify } from "yaml";
import { parseLeader } from "../../k0s/cluster/parse.ts";
import { testNeeding } from "../runner/needs.ts";
import { until } from "../support/until.ts";
import { openProgram, type Program, type Running } from "./program.ts";

interface Controller {
  readonly k0s: Program;
  readonly address: string;
  start(token?: string): Promise<Running>;
  kubectl(...argv: readonly string[]): ReturnType<Program["run"]>;
}

const CONFIG = "/etc/k0s/k0s.yaml";
let started: Controller[] = [];
let first = 0;

beforeEach(() => {
  started = [];
  // Addresses of the loopback that no earlier test used.
  first += 10;
});
afterEach(async () => {
  for (const each of started) await each.k0s.dispose();
});

async function controller(index: number, charts: readonly string[] = []): Promise<Controller> {
  const k0s = await openProgram();
  const address = `127.7.${process.pid % 250}.${first + index}`;
  const spec = {
    api: { address, onlyBindToAddress: true },
    storage: { type: "etcd", etcd: { peerAddress: address, extraArgs: { name: `c${index}` } } },
    extensions: { helm: { charts: charts.map((name) => ({ name, chartname: `r/${name}`, namespace: "apps" })) } },
  };
  k0s.write(CONFIG, stringify({ apiVersion: "k0s.k0sproject.io/v1beta1", kind: "ClusterConfig", spec }));
  const made: Controller = {
    k0s,
    address,
    start: async (token) => {
      const more = token === undefined ? [] : ["--token-file", "/etc/k0s/token"];
      if (token !== undefined) k0s.write("/etc/k0s/token", token);
      const running = k0s.start(["controller", "--config", CONFIG, ...more]);
      await until(`c${index} answers`, async () => (await k0s.run(["status"])).exitCode === 0);
      return running;
    },
    // The admin's kubeconfig says localhost, which this one does not listen on.
    kubectl: (...argv) => k0s.run(["kubectl", ...argv], { env: { K0S_SIM_API: `https://${address}:6443` } }),
  };
  started.push(made);
  return made;
}

const token = async (from: Controller): Promise<string> =>
  (
    await from.k0s.run(["token", "create", "--role", "controller"], {
      env: { K0S_SIM_API: `https://${from.address}:6443` },
    })
  ).stdout.trim();
const members = async (of: Controller): Promise<readonly string[]> =>
  Object.keys(
    (JSON.parse((await of.k0s.run(["etcd", "member-list"])).stdout) as { readonly members: object }).members,
  ).toSorted();
const charts = async (of: Controller): Promise<string> =>
  (await of.kubectl("get", "charts", "-n", "kube-system", "-o", "jsonpath={.items[*].metadata.name}")).stdout;

/** Names by the leases: of all controllers, and of the one whose run holds the leader's too. */
async function leases(of: Controller): Promise<{ readonly names: string; readonly leader?: string }> {
  const { stdout, exitCode } = await of.kubectl("get", "leases", "-n", "kube-node-lease", "-o", "json");
  // While a member comes there may be no leader for a moment.
  if (exitCode !== 0) return { names: "" };
  const leader = parseLeader(stdout);
  const { items } = JSON.parse(stdout) as {
    readonly items: readonly { readonly metadata: { readonly name: string } }[];
  };
  const names = items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith("k0s-ctrl-"));
  return { names: names.toSorted().join(), ...(leader === undefined ? {} : { leader }) };
}

describe("controllers", () => {
  testNeeding(
    ["the stand-in"],
    "keep a lease each, and whoever leads holds the leader's with the same id",
    async () => {
      const [a, b] = [await controller(1), await controller(2)];
      await a.start();
      const running = await b.start(await token(a));
      await until("both leases", async () => (await leases(b)).names === "k0s-ctrl-c1,k0s-ctrl-c2");
      const { leader } = await leases(a);
      expect(["c1", "c2"]).toContain(leader ?? "");
      expect((await leases(b)).leader).toBe(leader ?? "");
      await running.stop();
    },
    60_000,
  );

  testNeeding(
    ["the stand-in"],
    "join with a token, share their objects, and leave",
    async () => {
      const [a, b, c] = [await controller(1), await controller(2), await controller(3)];
      await a.start();
      const given = await token(a);
      await b.start(given);
      await until("two members", async () => (await members(a)).length === 2);
      await c.start(given);
      await until("three members everywhere", async () => {
        const lists = await Promise.all([a, b, c].map(members));
        return lists.every((list) => list.join() === "c1,c2,c3");
      });
      // Written on a follower, seen everywhere.
      c.k0s.write("/etc/k0s/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
      // An election may be on while a member comes.
      const file = c.k0s.host("/etc/k0s/ns.yaml");
      await until("the namespace", async () => (await c.kubectl("apply", "-f", file)).exitCode === 0);
      await until("everywhere", async () => {
        const all = await Promise.all([a, b, c].map((each) => each.kubectl("get", "namespace", "shop")));
        return all.every((each) => each.exitCode === 0);
      });
      await b.k0s.run(["etcd", "leave", "--peer-address", c.address]);
      await until("two members", async () => (await members(a)).join() === "c1,c2");
    },
    60_000,
  );

  testNeeding(
    ["the stand-in"],
    "apply their own charts with pruning when they come to lead",
    async () => {
      const [a, b, c] = [
        await controller(1, ["web"]),
        await controller(2, ["web", "extra"]),
        await controller(3, ["web", "extra"]),
      ];
      const running = await a.start();
      const given = await token(a);
      await b.start(given);
      await c.start(given);
      await until("the first leader's chart", async () => (await charts(b)) === "k0s-addon-chart-web");
      await running.stop();
      await until(
        "the next leader's charts",
        async () => (await charts(b)) === "k0s-addon-chart-extra k0s-addon-chart-web",
      );
      // Back, it follows: what it would apply itself does not matter.
      await a.start();
      await Bun.sleep(2000);
      expect(await charts(a)).toBe("k0s-addon-chart-extra k0s-addon-chart-web");
    },
    60_000,
  );

  testNeeding(
    ["the stand-in"],
    "with the same charts keep a release whoever of them leads",
    async () => {
      const all = [await controller(1, ["web"]), await controller(2, ["web"]), await controller(3, ["web"])] as const;
      const [a, b, c] = all;
      const runs = new Map<Controller, Running>();
      runs.set(a, await a.start());
      const given = await token(a);
      runs.set(b, await b.start(given));
      runs.set(c, await c.start(given));
      const uid = async (of: Controller): Promise<string> =>
        (await of.kubectl("get", "charts", "-n", "kube-system", "-o", "jsonpath={.items[*].metadata.uid}")).stdout;
      const leads = (wanted: (name: string) => boolean, asked: Controller): Promise<string> =>
        until("a leader", async () => {
          const { stdout, exitCode } = await asked.kubectl("get", "leases", "-n", "kube-node-lease", "-o", "json");
          const name = exitCode === 0 ? parseLeader(stdout) : undefined;
          return name !== undefined && wanted(name) ? name : undefined;
        });
      const made = await until("the release", async () => (await uid(a)) || undefined);
      const nth = (name: string): Controller => all[Number(name.slice(1)) - 1] ?? a;
      const stop = async (which: Controller): Promise<void> => void (await runs.get(which)?.stop());

      const one = nth(await leads(() => true, a));
      const [x, y] = all.filter((each) => each !== one);
      await stop(one);
      const two = nth(await leads((name) => nth(name) !== one, x ?? a));
      expect(await uid(two)).toBe(made);
      // Who was away while the second one wrote has older data than the third, which it needs for a majority: also when
      // the second stops with its last write.
      const third = two === x ? (y ?? a) : (x ?? a);
      two.k0s.write("/etc/k0s/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: last}\n");
      expect((await two.kubectl("apply", "-f", two.k0s.host("/etc/k0s/ns.yaml"))).exitCode).toBe(0);
      await stop(two);
      runs.set(one, await one.start(one === a ? undefined : given));
      await leads((name) => nth(name) === third, third);
      expect((await third.kubectl("get", "namespace", "last")).exitCode).toBe(0);
      await Bun.sleep(2000);
      expect(await uid(third)).toBe(made);
    },
    240_000,
  );

  testNeeding(
    ["the stand-in"],
    "without a majority are not ready and write nothing",
    async () => {
      const [a, b] = [await controller(1), await controller(2)];
      await a.start();
      const other = await b.start(await token(a));
      await other.stop();
      const ready = async (): Promise<number> =>
        (await fetch(`https://${a.address}:6443/readyz`, { tls: { rejectUnauthorized: false } })).status;
      await until("not ready", async () => (await ready()) === 500);
      expect((await a.kubectl("get", "ns")).exitCode).toBe(1);
      await b.start();
      await until("ready again", async () => (await ready()) === 200);
    },
    60_000,
  );
});
