// budget: 9000 s
/**
 * Three controllers and a worker on one private segment, started at once: they join one after another, hold one address
 * together, and keep it when its holder goes. Each test goes on with what the one before left.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressesOf, prepareMember, type Member, type Site } from "../qemu/harness/cluster.ts";
import { createTestCa, startServer } from "../qemu/harness/http.ts";
import { testImage } from "../qemu/harness/image.ts";
import { openOperator } from "../qemu/harness/node.ts";
import { freePort } from "../qemu/harness/vm.ts";
import { openWire } from "../qemu/harness/wire.ts";
import { testClusterVerbs } from "./cluster-verbs.ts";

const VIP = "192.168.77.100";
const CONTROLLERS = [11, 12, 13];
const LONG_MS = 2_400_000;

const image = await testImage();
const operator = await openOperator();
const directory = mkdtempSync(join(tmpdir(), "corium-cluster-"));
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
      : `ha: { enabled: true, virtualIP: ${VIP}/24, authPass: s3gm3nt1, unicastPeers: [${others.join(", ")}] }\n`;
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
        const token = await member(11).vm().shell.must(`k0s token create --role ${kind} --expiry 1h`, 120_000);
        await Bun.write(join(directory, "tokens", `n${number}`), token);
        await operator.waitInService(`n${number}`, LONG_MS);
      }
      const listed = await member(12).vm().shell.must("k0s kubectl get nodes -o name", 120_000);
      // A controller without a kubelet is no Node.
      expect(listed.split("\n").toSorted()).toEqual(["node/n11", "node/n12", "node/n14"]);
      const { members: etcd } = JSON.parse(await member(13).vm().shell.must("k0s etcd member-list", 120_000)) as {
        readonly members: Readonly<Record<string, string>>;
      };
      expect(etcd).toEqual({
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
});

describe("what is done with the whole of it", () => {
  testClusterVerbs({ operator, controllers: CONTROLLERS, worker: 14, member, vip: VIP });
});
