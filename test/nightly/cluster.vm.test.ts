// budget: 9000 s
/**
 * Three controllers and a worker on one private segment, started at once: they join one after another, hold one address
 * together, and keep it when its holder goes. Each test goes on with what the one before left.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressesOf, prepareMember, type Member, type Site } from "../qemu/harness/cluster.ts";
import { createTestCa, startServer } from "../qemu/harness/http.ts";
import { testImage } from "../qemu/harness/image.ts";
import { openOperator } from "../qemu/harness/node.ts";
import { freePort } from "../qemu/harness/vm.ts";
import { openWire, type Claim } from "../qemu/harness/wire.ts";
import { HANDOVER_BLOCKS } from "../qemu/harness/documents.ts";
import { testClusterHandover } from "./cluster-handover.ts";
import { testClusterVerbs, type WholeCluster } from "./cluster-verbs.ts";

const VIP = "192.168.77.100";
const CONTROLLERS = [11, 12, 13];
const LONG_MS = 2_400_000;
const FAILOVERS = 20;
/** Of them, the last ones. */
const KILLS = 2;
/** Several intervals of VRRP. */
const SETTLE_MS = 6000;

const image = await testImage();
const operator = await openOperator();
const directory = mkdtempSync(join(tmpdir(), "corium-cluster-"));
mkdirSync(join(directory, "tokens"));
const authority = await createTestCa();
const tokens = startServer({ directory: join(directory, "tokens"), tls: await authority.server() });
const site: Site = { lanPort: await freePort(), network: "192.168.77" };
const wire = await openWire(site.lanPort);
const members: Member[] = [];
afterAll(async () => {
  await Promise.all(members.map((member) => member.stop()));
  wire.close();
  tokens.stop();
  operator.dispose();
  rmSync(directory, { recursive: true, force: true });
});

const joining = (name: string): string => `join: { tokenFrom: { url: "${tokens.url}/${name}", waitFor: 1h } }\n`;

function document(role: string, number: number, join: string): string {
  const others = CONTROLLERS.filter((each) => each !== number).map((each) => `192.168.77.${each}`);
  const ha =
    role === "worker"
      ? ""
      : `ha: { enabled: true, virtualIP: ${VIP}/24, authPass: s3gm3nt1, unicastPeers: [${others.join(", ")}] }\n${HANDOVER_BLOCKS}`;
  return `role: ${role}
cluster: { name: fleet, endpoint: ${VIP} }
node: { name: n${number} }
api: { enabled: true }
${ha}${join}`;
}

const roles = [
  [11, "controller+worker", ""],
  [12, "controller+worker", joining("n12")],
  [13, "controller", joining("n13")],
  [14, "worker", joining("n14")],
] as const;

const member = (number: number): Member => {
  const found = members.find(({ name }) => name === `n${number}`);
  if (found === undefined) throw new Error(`n${number} was not made`);
  return found;
};

/** What is the same on every controller: without this node's own addresses. */
async function clusterWide(from: Member): Promise<string> {
  const text = await from.vm().shell.must("cat /etc/k0s/k0s.yaml");
  const { address } = from;
  const peers = CONTROLLERS.map((number) => `192.168.77.${number}`);
  return text
    .split("\n")
    .filter((line) => !/^ +(address|peerAddress|unicastSourceIP): /.test(line) || !line.includes(address))
    .filter((line) => !peers.some((peer) => line.trim() === `- "${peer}"`))
    .join("\n");
}

async function etcdMembers(number: number): Promise<Readonly<Record<string, string>>> {
  const text = await member(number).vm().shell.must("k0s etcd member-list", 120_000);
  return (JSON.parse(text) as { readonly members: Readonly<Record<string, string>> }).members;
}

const answers = (): readonly Claim[] => wire.claims.filter(({ address }) => address === VIP);

const lastHolder = (): string => answers().at(-1)?.mac ?? "nobody";

async function nextClaim(isWanted: (claim: Claim) => boolean): Promise<Claim> {
  for (;;) {
    const found = answers().find(isWanted);
    if (found !== undefined) return found;
    await Bun.sleep(20);
  }
}

async function holderOnWire(): Promise<string> {
  const sinceMs = performance.now();
  return (await nextClaim(({ atMs }) => atMs > sinceMs)).mac;
}

/** Who held it, one after the other. */
function changesOf(claims: readonly Claim[]): readonly string[] {
  const macs = claims.filter(({ address }) => address === VIP).map(({ mac }) => mac);
  return macs.filter((mac, at) => mac !== macs[at - 1]);
}

/** From the first answer of a second holder to the last one of whoever gave up: 0 with one holder. Milliseconds. */
function overlapOf(claims: readonly Claim[]): number {
  const macs = new Map<string, { firstMs: number; lastMs: number }>();
  for (const { address, mac, atMs } of claims) {
    if (address !== VIP) continue;
    const known = macs.get(mac);
    macs.set(mac, { firstMs: known?.firstMs ?? atMs, lastMs: atMs });
  }
  if (macs.size < 2) return 0;
  const spans = [...macs.values()];
  const begin = Math.max(...spans.map(({ firstMs }) => firstMs));
  const end = Math.min(...spans.map(({ lastMs }) => lastMs));
  return Math.max(0, end - begin);
}

describe("a cluster", () => {
  test(
    "all four are started at once: the founder comes into service, the others wait for their tokens and say so",
    async () => {
      for (const [number, role, join] of roles)
        members.push(
          await prepareMember(image, directory, {
            name: `n${number}`,
            number,
            site,
            document: document(role, number, join),
          }),
        );
      await Promise.all(
        members.map(async (each) => {
          await each.start();
          await each.ready();
          // As the installation from a medium with corium.config.ca= would have left it.
          await each
            .vm()
            .shell.must(`mkdir -p /etc/corium; cat >/etc/corium/site-ca.pem <<'END'\n${authority.cert}END\n`);
          // As the pod of a CNI that the document leaves to somebody else: Kubernetes calls no node ready before.
          await each.lay("cni/net.d/10-site.conflist", '{ "cniVersion": "1.0.0", "name": "site", "plugins": [] }\n');
          await operator.enroll(each.vm(), each.name, LONG_MS, each.document);
        }),
      );
      await operator.waitInService("n11", LONG_MS);
      for (const number of [12, 13, 14]) {
        const node = await operator.status(`n${number}`);
        expect(node?.phase).toBe("provisioning");
        expect(node?.operation?.message).toMatch(/^waiting up to 1h for join\.tokenFrom: .*status 404/);
      }
    },
    LONG_MS,
  );

  test(
    "they join one after another",
    async () => {
      for (const [number, role] of roles.slice(1)) {
        const kind = role === "worker" ? "worker" : "controller";
        const token = await operator.must(["join-token", "n11", "--role", kind, "--expiry", "1h"], 120_000);
        await Bun.write(join(directory, "tokens", `n${number}`), token);
        await operator.waitInService(`n${number}`, LONG_MS);
      }
      const listed = await member(12).vm().shell.must("k0s kubectl get nodes -o name", 120_000);
      // A controller without a kubelet is no Node.
      expect(listed.split("\n").toSorted()).toEqual(["node/n11", "node/n12", "node/n14"]);
      expect(await etcdMembers(13)).toEqual({
        n11: "https://192.168.77.11:2380",
        n12: "https://192.168.77.12:2380",
        n13: "https://192.168.77.13:2380",
      });
    },
    LONG_MS,
  );

  test(
    "what is cluster-wide in k0s.yaml is the same to the byte on every controller; status is right on each",
    async () => {
      const texts = await Promise.all(CONTROLLERS.map((number) => clusterWide(member(number))));
      expect(new Set(texts).size).toBe(1);
      expect(texts[0]).toContain(`externalAddress: "${VIP}"`);
      for (const [number, role] of roles) {
        const node = await operator.status(`n${number}`);
        expect(node).toMatchObject({
          phase: "in-service",
          role,
          cluster: "fleet",
          endpoint: VIP,
          health: { verdict: "healthy" },
        });
        expect(node?.config.state).toBe("in-sync");
      }
    },
    LONG_MS,
  );

  test(
    "the virtual address is on exactly one node, which says so, and answers for it on the wire",
    async () => {
      const holders = [];
      for (const each of members) if ((await addressesOf(each)).includes(VIP)) holders.push(each);
      expect(holders.map(({ name }) => name)).toHaveLength(1);
      const said = [];
      for (const number of CONTROLLERS) {
        const node = await operator.status(`n${number}`);
        if (node?.ha?.holder === true) said.push(`n${number}`);
      }
      expect(said).toEqual(holders.map(({ name }) => name));
      wire.clear();
      const stop = wire.ask(VIP, "192.168.77.250", 200);
      await Bun.sleep(5000);
      stop();
      expect(new Set(wire.claims.filter(({ address }) => address === VIP).map(({ mac }) => mac))).toEqual(
        new Set(holders.map(({ mac }) => mac)),
      );
      // Unicast, and only between the three.
      expect(wire.adverts.length).toBeGreaterThan(0);
      expect(wire.adverts.filter(({ target }) => !target.startsWith("192.168.77."))).toEqual([]);
    },
    LONG_MS,
  );

  test(
    "links of the holder are cut, and two holders switched off: another takes the address, and it does not flap",
    async () => {
      const stop = wire.ask(VIP, "192.168.77.250", 100);
      const lines: string[] = [];
      try {
        for (let turn = 1; turn <= FAILOVERS; turn += 1) {
          const isKill = turn > FAILOVERS - KILLS;
          const before = await holderOnWire();
          const from = members.find(({ mac }) => mac === before);
          if (from === undefined) throw new Error(`${before} holds the address and is no member`);
          wire.clear();
          const cutMs = performance.now();
          await (isKill ? from.kill() : from.vm().setLink(false, "nic1"));
          const taken = await nextClaim(({ mac }) => mac !== before);
          await Bun.sleep(SETTLE_MS);
          // All have one priority, so that two may stand at once, until the one with the higher address is left.
          const claims = answers().filter(({ mac }) => mac !== before);
          const last = changesOf(claims.filter(({ atMs }) => atMs > performance.now() - SETTLE_MS / 2));
          expect([turn, last.length]).toEqual([turn, 1]);
          const electedMs = overlapOf(claims);
          wire.clear();
          const healedMs = performance.now();
          if (isKill) {
            await from.start();
            await from.vm().shell.waitReady(LONG_MS);
            await operator.waitInService(from.name, LONG_MS);
          } else await from.vm().setLink(true, "nic1");
          await Bun.sleep(SETTLE_MS);
          const after = changesOf(wire.claims.filter(({ atMs }) => atMs > performance.now() - SETTLE_MS / 2));
          expect([turn, after.length]).toEqual([turn, 1]);
          const doubleMs = overlapOf(wire.claims);
          lines.push(
            `failover ${turn}: ${isKill ? "killed" : "link cut"} ${from.name}, taken after ${Math.round(taken.atMs - cutMs)} ms, two at once for ${Math.round(electedMs)} ms; two holders for ${Math.round(doubleMs)} ms after healing`,
          );
          process.stdout.write(`${lines.at(-1)} (${Math.round(performance.now() - healedMs)} ms)\n`);
        }
      } finally {
        stop();
        await Promise.all(members.map((each) => each.vm().setLink(true, "nic1")));
      }
      const all = lines.map((line) => Number(/taken after (\d+)/.exec(line)?.[1])).toSorted((a, b) => a - b);
      process.stdout.write(
        `failover: median ${all[Math.floor(all.length / 2)]} ms, worst ${all.at(-1)} ms of ${all.length}\n`,
      );
      expect(all).toHaveLength(FAILOVERS);
    },
    2 * LONG_MS,
  );

  test(
    "a founder that is installed again with the same document is refused before any change: its cluster lives",
    async () => {
      await member(11).kill();
      const again = await prepareMember(image, directory, {
        name: "again",
        number: 11,
        site,
        document: member(11).document,
      });
      try {
        await again.start();
        await again.ready();
        await operator.enroll(again.vm(), "again", LONG_MS, again.document);
        await again.vm().console.expect(/this cluster exists already: /, 600_000);
        expect(await again.vm().shell.must("ls -A /etc/k0s; ls -A /var/lib/k0s; hostname")).toBe("corium");
      } finally {
        await again.stop();
      }
      await member(11).start();
      await member(11).vm().shell.waitReady(LONG_MS);
      await operator.waitInService("n11", LONG_MS);
    },
    LONG_MS,
  );
});

const TAKEN = [
  { name: "n14", number: 15, role: "worker", says: /the cluster has a node 'n14' already: machine \w{32}/ },
  { name: "n13", number: 16, role: "controller", says: /etcd has a member 'n13' at 192\.168\.77\.13 already/ },
] as const;

describe("a machine that joins under a name that another one has", () => {
  test(
    "as a worker and as a controller: each is told who has it, before anything is changed",
    async () => {
      const twins: Member[] = [];
      try {
        await Promise.all(
          TAKEN.map(async ({ name, number, role, says }) => {
            const token = await operator.must(["join-token", "n11", "--role", role, "--expiry", "1h"], 180_000);
            await Bun.write(join(directory, "tokens", `twin${number}`), token);
            const text = document(role, number, joining(`twin${number}`)).replace(`name: n${number}`, `name: ${name}`);
            const twin = await prepareMember(image, directory, { name: `twin${number}`, number, site, document: text });
            twins.push(twin);
            await twin.start();
            await twin.ready();
            const { shell, console } = twin.vm();
            await shell.must(`mkdir -p /etc/corium; cat >/etc/corium/site-ca.pem <<'END'\n${authority.cert}END\n`);
            await operator.enroll(twin.vm(), twin.name, LONG_MS, text);
            await console.expect(says, LONG_MS);
            expect(await shell.must("ls -A /etc/k0s; ls -A /var/lib/k0s; hostname")).toBe("corium");
          }),
        );
      } finally {
        await Promise.all(twins.map((twin) => twin.stop()));
      }
      expect(Object.keys(await etcdMembers(11)).toSorted()).toEqual(["n11", "n12", "n13"]);
    },
    LONG_MS,
  );
});

const whole: WholeCluster = { operator, controllers: CONTROLLERS, worker: 14, member, vip: VIP };
describe("what is done with the whole of it", () => {
  testClusterVerbs(whole);
});
describe("its CNI", () => {
  testClusterHandover(whole);
});

describe("a cluster that one leaves", () => {
  test(
    "a controller is reset: it leaves etcd and comes back held and unclaimed; the rest keeps its address",
    async () => {
      await operator.must(["reset", "n13", "--yes", "--confirm", "n13"], 900_000);
      await member(13)
        .vm()
        .console.expect(/reboot: Restarting system/, 900_000);
      await member(13)
        .vm()
        .console.expect(/waiting: a claim together with a document: this node was reset/, LONG_MS);
      expect(await etcdMembers(11)).toEqual({
        n11: "https://192.168.77.11:2380",
        n12: "https://192.168.77.12:2380",
      });
      await member(13).ready();
      expect(await member(13).vm().shell.must("ls -A /etc/k0s; ls -A /var/lib/k0s; hostname")).toBe("corium");
      const holder = members.find(({ mac }) => mac !== member(13).mac && mac === lastHolder());
      expect(["n11", "n12"]).toContain(holder?.name ?? "");
      for (const name of ["n11", "n12", "n14"]) expect((await operator.status(name))?.phase).toBe("in-service");
    },
    LONG_MS,
  );
});
