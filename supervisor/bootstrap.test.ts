import { describe, expect, test } from "bun:test";
import type { Source } from "../config/source.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { findDocument } from "../config/driver.ts";
import { parseDocument } from "../config/load.ts";
import { secretFields } from "../config/secrets.ts";
import { appError } from "../kit/app-error.ts";
import { err, ok } from "../kit/result.ts";
import { fakeCluster } from "../test/support/fake-cluster.ts";
import { mintAuthority } from "../pki/driver.ts";
import { realRandom } from "../host/random.ts";
import { MachineDied } from "../test/support/fake-host.ts";
import { fakeK0s } from "../test/support/fake-k0s.ts";
import { machine } from "../test/machines/machines.ts";
import { bootstrap, inspectAndPlan } from "./bootstrap.ts";
import { consentOf, giveConsent } from "./own-consent.ts";
import {
  paths,
  plain,
  withLinks,
  type World,
  world,
  services,
  joinToken,
  statusOf,
  nodeOf,
  powerOn,
} from "../test/support/first-boot.ts";
import { sha256Of } from "../kit/sha256.ts";

describe("first boot", () => {
  test("a document becomes a node in service, with its steps recorded in order", async () => {
    const of = world(plain);
    expect(await bootstrap(services(of))).toBe(0);
    const [operation] = of.state.operations.list();
    expect(operation).toMatchObject({ kind: "bootstrap", phase: "succeeded", requester: { kind: "document" } });
    expect(operation?.steps.map(({ id }) => id)).toEqual([
      "clock",
      "hostname",
      "raid:data:create",
      "raid:data:config",
      "raid:data:filesystem",
      "mount:data",
      "k0s:config",
      "k0s:install",
      "k0s:start",
      "k0s:ready",
      "timers",
      "baseline",
      "marker",
    ]);
    expect(operation?.message).toBeUndefined();
    expect(of.state.baseline.get()).toMatchObject({ hostname: "corium-01234567", k0sVersion: "v1.36.3+k0s.2" });
    expect(of.host.text("/etc/hostname")).toBe("corium-01234567\n");
    expect(of.state.owned.list()).toMatchObject([{ kind: "raid", name: "data" }]);
    expect(statusOf(of)).toMatchObject({ state: "done" });
    const calls = of.host.calls.length;
    expect(await bootstrap(services(of))).toBe(0);
    expect(of.host.calls.slice(calls).filter((call) => call.startsWith("exec"))).toEqual([]);
  });

  test("a founder that was installed again, with the same document, while its cluster lives: give it a join", async () => {
    const founding = `role: controller+worker
cluster: {name: harbour, endpoint: 192.168.1.50}
ha: {enabled: true, virtualIP: 192.168.1.50/24, interface: eth0, authPass: x}
`;
    const of = world(founding);
    of.host.setHttp(async ({ url }) =>
      url.startsWith("https://192.168.1.50:6443/")
        ? ok({ status: 401, body: new Uint8Array(), url })
        : err(appError("refused", "connection refused")),
    );
    expect(await bootstrap(services(of))).toBe(1);
    const shown = JSON.stringify(statusOf(of));
    expect(shown).toContain("this cluster exists already: 192.168.1.50:6443 answers");
    expect(shown).toContain("give this node a join token");
    const changes = of.host.calls.filter((call) =>
      /^(exec (hostname|k0s install|storage)|systemd\.(start|enable))/.test(call),
    );
    expect(changes).toEqual([]);
    expect(of.host.text("/etc/k0s/k0s.yaml")).toBeUndefined();
  });

  test("power lost at any call: after the next boot the node is as without it, and bootstrap ran once", async () => {
    const reference = world(plain);
    await bootstrap(services(reference));
    const wanted = nodeOf(reference);
    const total = reference.host.calls.length;
    expect(total).toBeGreaterThan(60);
    for (let call = 1; call <= total; call++) {
      for (const when of ["before", "after"] as const) {
        const of = world(plain);
        of.host.dieAt(call, when);
        let isDead = false;
        try {
          await bootstrap(services(of));
        } catch (error) {
          if (!(error instanceof MachineDied)) throw error;
          isDead = true;
        }
        if (!isDead) continue;
        powerOn(of);
        const status = await bootstrap(services(of));
        expect({ call, when, status, error: statusOf(of)?.error }).toEqual({ call, when, status: 0, error: undefined });
        // Mounts are units: systemd brings them back without us once they are kept.
        expect({ call, when, node: nodeOf(of) }).toEqual({ call, when, node: wanted });
        expect(new Set(of.destroyed)).toEqual(new Set(["A", "B"]));
      }
    }
    // For what hangs; no measure of a loaded machine, which is many times slower.
  }, 300_000);

  test("the consent of --wipe-own is used up once the storage stands, and is an event", async () => {
    const of = world(plain);
    giveConsent(of.state, { atMs: 1, by: "operator ann" });
    expect(await bootstrap(services(of))).toBe(0);
    expect(consentOf(of.state)).toBeUndefined();
    const kinds = of.state.events.last(50).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind.startsWith("wipe-own"))).toEqual(["wipe-own-given", "wipe-own-spent"]);
  });

  test("B083: no document: it stays claimable, changes nothing and says so", async () => {
    const of = world(undefined);
    expect(await bootstrap(services(of))).toBe(0);
    expect(statusOf(of)).toMatchObject({ state: "idle" });
    expect(of.state.operations.list()).toEqual([]);
  });

  test("a refused document changes nothing and shows every problem with its place", async () => {
    const of = world("role: single\nnode: {name: Bad_Name}\nstorage: {type: nfs}\n");
    expect(await bootstrap(services(of))).toBe(1);
    const error = statusOf(of)?.error?.join("\n") ?? "";
    expect(error).toContain("node.name");
    expect(error).toContain("storage.type");
    expect(error).toContain("/usr/share/corium/config.yaml:2:");
    expect(of.state.events.last()).toMatchObject([{ kind: "bootstrap-failed", severity: "error" }]);
    expect(of.destroyed).toEqual([]);
  });

  test("B069, B073: a document that can't be read is a state of its own, with line and column; nothing is changed", async () => {
    const of = world("role: single\nnode:\n\tname: a\n");
    expect(await bootstrap(services(of))).toBe(1);
    expect(statusOf(of)?.state).toBe("failed");
    const error = statusOf(of)?.error?.join("\n") ?? "";
    expect(error).toContain("/usr/share/corium/config.yaml:3:1");
    expect(error).toContain("a tab is used as indentation");
    expect(of.host.text("/etc/hostname")).toBeUndefined();
    expect(of.state.operations.list()).toEqual([]);
  });

  test("what a cloud-config asks of cloud-init was dropped without a word", async () => {
    const of = world("#cloud-config\nusers: []\nwrite_files: []\ncorium:\n  role: single\n");
    expect(await bootstrap(services(of))).toBe(0);
    expect(statusOf(of)?.warnings?.join("\n")).toContain(
      "/usr/share/corium/config.yaml:2:1: warning: beside corium: nobody carries out users, write_files",
    );
  });

  test("B087: a token that is no good stops a worker before anything is changed; with another one it goes on", async () => {
    const of = world(`role: worker
node: {name: w1}
cluster: {endpoint: k.example}
join: {tokenFrom: {file: /var/lib/corium/token}}
`);
    of.host.setHttp(fakeCluster().http);
    const mint = async (nowMs: number) => mintAuthority({ commonName: "cluster", nowMs, random: realRandom });
    const [old, ca] = [await mint(0), await mint(of.host.clock.nowMs())];
    of.host.put("/var/lib/corium/token", joinToken("kubelet-bootstrap", old.certificate));
    expect(await bootstrap(services(of))).toBe(1);
    expect(statusOf(of)?.error?.join("\n")).toContain("the cluster CA in join.tokenFrom has expired");
    of.host.put("/var/lib/corium/token", joinToken("controller-bootstrap", ca.certificate));
    expect(await bootstrap(services(of))).toBe(1);
    const said = statusOf(of)?.error?.join("\n") ?? "";
    expect(said).toContain("holds a token for a controller, this node is a worker");
    expect(said).toContain("cctl join-token CONTROLLER --role worker");
    expect(said).not.toContain("abcdef.0123456789abcdef");
    expect(of.host.text("/etc/hostname")).toBeUndefined();
    expect(of.host.text("/etc/k0s/join-token")).toBeUndefined();
    const good = joinToken("kubelet-bootstrap", ca.certificate);
    of.host.put("/var/lib/corium/token", good.slice(0, -40));
    expect(await bootstrap(services(of))).toBe(1);
    expect(statusOf(of)?.error?.join("\n")).toContain("join.tokenFrom is no k0s join token");
    expect(of.host.text("/etc/hostname")).toBeUndefined();
    of.host.put("/var/lib/corium/token", `${good}\n`);
    expect(await bootstrap(services(of))).toBe(0);
    expect(of.host.text("/etc/k0s/join-token")).toBe(`${good}\n`);
    expect(statusOf(of)?.warnings?.join()).toContain('leads to "192.0.2.10", the endpoint is "k.example"');
    expect(of.state.operations.list().map(({ phase }) => phase)).toEqual(["succeeded", "failed", "failed", "failed"]);
  });

  test("a stored join token of an earlier source was used instead of waiting for what the new one gives", async () => {
    const worker = (source: string): string =>
      `role: worker\nnode: {name: w1}\ncluster: {endpoint: 192.0.2.10}\njoin: {tokenFrom: {file: ${source}}}\n`;
    const of = world(worker("/var/lib/corium/first"));
    of.host.setHttp(fakeCluster().http);
    const k0s = of.host.programs.get("k0s");
    if (k0s === undefined) throw new Error("no k0s");
    of.host.programs.set("k0s", (request, host) =>
      request.argv[1] === "install" ? { exitCode: 1, stderr: "no room" } : k0s(request, host),
    );
    const nowMs = of.host.clock.nowMs();
    const ca = await mintAuthority({ commonName: "cluster", nowMs, random: realRandom });
    const token = joinToken("kubelet-bootstrap", ca.certificate);
    of.host.put("/var/lib/corium/first", token.replaceAll(/.{76}/g, "$&\n"));
    const said = async (): Promise<string> => {
      expect(await bootstrap(services(of))).toBe(1);
      return statusOf(of)?.error?.join("\n") ?? "";
    };
    expect(await said()).toContain("no room");
    expect(of.host.text("/etc/k0s/join-token")).toBe(`${token}\n`);
    // It gave it once: the next attempt makes do with what is stored.
    await of.host.files.remove("/var/lib/corium/first");
    expect(await said()).toContain("no room");
    of.host.put("/usr/share/corium/config.yaml", worker("/var/lib/corium/second"));
    expect(await said()).toContain("cannot read /var/lib/corium/second");
    of.host.put("/var/lib/corium/second", joinToken("kubelet-bootstrap", ca.certificate, "https://192.0.2.11:6443"));
    of.host.programs.set("k0s", k0s);
    expect(await bootstrap(services(of))).toBe(0);
    expect(of.host.text("/etc/k0s/join-token")).not.toBe(`${token}\n`);
  });

  describe("what the cluster says of a node that wants to join, before anything is changed", () => {
    const joining = async (role: "worker" | "controller") => {
      const of = world(`role: ${role}
node: {name: n2}
cluster: {endpoint: 192.0.2.10}
join: {tokenFrom: {file: /var/lib/corium/token}}
raid:
  - {name: data, level: 1, devices: [{serial: A}, {serial: B}], mountPoint: /var/lib/k0s}
`);
      const nowMs = of.host.clock.nowMs();
      const authority = await mintAuthority({ commonName: "cluster", nowMs, random: realRandom });
      const [user, port] = role === "worker" ? ["kubelet-bootstrap", 6443] : ["controller-bootstrap", 9443];
      of.host.put("/var/lib/corium/token", joinToken(user, authority.certificate, `https://192.0.2.10:${port}`));
      const cluster = fakeCluster(authority);
      of.host.setHttp(cluster.http);
      return { of, cluster };
    };
    const said = (of: World): string => statusOf(of)?.error?.join("\n") ?? "";
    const expectUntouched = (of: World): void => {
      expect(of.host.text("/etc/hostname")).toBeUndefined();
      expect(of.host.text("/etc/k0s/join-token")).toBeUndefined();
      expect(of.destroyed).toEqual([]);
    };

    test.each(["worker", "controller"] as const)(
      "B055, B056: a %s of a name that another machine has is refused, with both; once the name is free it joins",
      async (role) => {
        const { of, cluster } = await joining(role);
        const status = {
          nodeInfo: { machineID: "other", systemUUID: "u" },
          addresses: [{ type: "InternalIP", address: "192.0.2.77" }],
          conditions: [{ type: "Ready", status: "True" }],
        };
        cluster.nodes.set("n2", { status });
        expect(await bootstrap(services(of))).toBe(1);
        expect(said(of)).toContain("the cluster has a node 'n2' already: machine other, 192.0.2.77, ready");
        expect(said(of)).toContain("this is machine 0123456789abcdef0123456789abcdef");
        expectUntouched(of);
        cluster.nodes.delete("n2");
        expect(await bootstrap(services(of))).toBe(0);
        expect(of.state.baseline.get()?.hostname).toBe("n2");
      },
    );

    test("B056: a second controller under the name of a member of etcd is refused before etcd hears of it", async () => {
      const { of, cluster } = await joining("controller");
      cluster.members = [{ metadata: { name: "n2" }, status: { peerAddress: "192.0.2.20" } }];
      expect(await bootstrap(services(of))).toBe(1);
      expect(said(of)).toContain("etcd has a member 'n2' at 192.0.2.20 already");
      expectUntouched(of);
      expect(cluster.asked.filter((asked) => asked.startsWith("POST"))).toEqual([]);
    });

    test.each(["worker", "controller"] as const)(
      "B087: a revoked token of a %s says that it has expired or was revoked",
      async (role) => {
        const { of, cluster } = await joining(role);
        cluster.isTokenRefused = true;
        expect(await bootstrap(services(of))).toBe(1);
        expect(said(of)).toContain("the cluster refuses the join token (401): it has expired, or was revoked");
        expect(said(of)).toContain("cctl join-token");
        expectUntouched(of);
        expect(JSON.stringify([said(of), of.state.operations.list(), of.host.calls])).not.toContain(
          "0123456789abcdef.",
        );
      },
    );

    test("a cluster that is still starting is waited for, visibly; one that never answers fails with nothing changed", async () => {
      const { of, cluster } = await joining("controller");
      cluster.silentFor = 1e9;
      const fromMs = of.host.clock.monotonicMs();
      expect(await bootstrap(services(of))).toBe(1);
      expect(said(of)).toContain("waited 30 min for the cluster to answer: 192.0.2.10:9443 refused the connection");
      expect(of.host.clock.monotonicMs() - fromMs).toBeGreaterThan(29 * 60_000);
      expectUntouched(of);
      cluster.silentFor = 3;
      expect(await bootstrap(services(of))).toBe(0);
    });
  });

  test.each(["10.9.0.1", "tokens.example.net"])(
    "a token at %s, which only the overlay reaches: it was waited for before there was an overlay",
    async (server) => {
      const text = `role: worker
join: { tokenFrom: { url: "https://${server}/t", waitFor: 30m } }
wireguard:
  - name: wg0
    address: 10.9.0.2/24
    privateKeyFrom: { url: "https://keys.example.net/k" }
    peers: [{ publicKey: "oaz/T6GntS+g8BFaovEUO64kxo89I2d5WO77wRV9RH4=", allowedIPs: [10.9.0.1/32] }]
`;
      const of = world(text);
      of.host.programs.set(
        "getent",
        ({ argv }) => `${argv[2] === "keys.example.net" ? "192.0.2.1" : "10.9.0.1"} STREAM\n`,
      );
      const { document } = parseDocument(text, { nowMs: 0 });
      if (document === undefined) throw new Error("no document");
      const planned = await inspectAndPlan(services(of), document, "", secretFields(document));
      if (!planned.ok) throw new Error(planned.error.message);
      const steps = planned.value.plan.steps.map(({ id, title }) => `${id}: ${title}`);
      const at = (step: string): number => steps.findIndex((each) => each.startsWith(step));
      expect(steps[at("secrets:")]).toBe("secrets: get wireguard[wg0].privateKeyFrom");
      expect(steps[at("secrets:overlay:")]).toBe("secrets:overlay: get join.tokenFrom through the overlay");
      expect(at("wireguard:wg0:")).toBeLessThan(at("secrets:overlay:"));
      expect(at("secrets:overlay:")).toBeLessThan(at("k0s:install:"));
    },
  );

  test("a disk that holds data stops it before the first change, named on the console; a corrected document goes on", async () => {
    const of = world(plain);
    const foreign = machine("old-ext4-on-a-member");
    expect(await bootstrap(services(of, { readInventory: async () => ok(foreign) }))).toBe(1);
    expect(statusOf(of)?.error?.join("\n")).toContain("holds data: ext4");
    expect(of.state.operations.list()).toMatchObject([{ phase: "failed" }]);
    expect(of.host.text("/etc/hostname")).toBeUndefined();
    expect(of.destroyed).toEqual([]);
    expect(await bootstrap(services(of))).toBe(0);
  });

  test("a document corrected after the one before had written its manifests: k0s would have applied them too", async () => {
    const stack = (name: string): string =>
      `role: single\nmanifests:\n  - name: ${name}\n    files: [{ name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}" }]\n`;
    const of = world(stack("old"));
    const isFull = "/etc/k0s/k0s.yaml";
    const host: FakeHost = {
      ...withLinks(of.host),
      files: {
        ...of.host.files,
        write: async (path, ...more) =>
          path === isFull ? err(appError("ENOSPC", "no space is left")) : of.host.files.write(path, ...more),
      },
    };
    expect(await bootstrap(services(of, { host }))).toBe(1);
    expect(of.host.text("/var/lib/k0s/manifests/old/a.yaml")).toContain("Namespace");
    of.host.put(paths.config, stack("new"));
    expect(await bootstrap(services(of))).toBe(0);
    expect(of.host.text("/var/lib/k0s/manifests/old/a.yaml")).toBeUndefined();
    expect(of.host.text("/var/lib/k0s/manifests/new/a.yaml")).toContain("Namespace");
    expect(of.state.operations.list()[0]?.steps.map(({ id }) => id)).toContain("earlier");
  });

  test("maintenance holds until the claim; the document that came with it is read again", async () => {
    const of = world("role: single\napi: {enabled: true}\nnode: {name: old}\n");
    let polls = 0;
    const host: FakeHost = {
      ...withLinks(of.host),
      clock: {
        ...of.host.clock,
        sleep: async (ms, signal) => {
          await of.host.clock.sleep(ms, signal);
          polls += 1;
          if (polls !== 3) return;
          expect(statusOf(of)).toMatchObject({ state: "waiting", message: "waiting to be claimed" });
          expect(of.host.text("/etc/hostname")).toBeUndefined();
          of.host.put(paths.config, "role: single\napi: {enabled: true}\nnode: {name: fresh}\n");
          of.state.claim.record({ operatorCA: "x", fingerprint: "SHA256:x", atMs: 1, by: "enroll" });
        },
      },
    };
    expect(await bootstrap(services(of, { host }))).toBe(0);
    expect(polls).toBeGreaterThanOrEqual(3);
    expect(of.state.baseline.get()?.hostname).toBe("fresh");
  });

  test("an answer that was there before the wait began is enough", async () => {
    const of = world("role: single\napi: {enabled: true}\n");
    of.state.claim.record({ operatorCA: "x", fingerprint: "SHA256:x", atMs: 1, by: "enroll" });
    expect(await bootstrap(services(of))).toBe(0);
  });

  test("an unreadable document after the claim is an error, not a fall-back to the older one", async () => {
    const of = world("role: single\napi: {enabled: true}\nnode: {name: old}\n");
    of.host.put(paths.config, "role: [");
    of.state.claim.record({ operatorCA: "x", fingerprint: "SHA256:x", atMs: 1, by: "enroll" });
    expect(await bootstrap(services(of))).toBe(1);
    expect(of.host.text("/etc/hostname")).toBeUndefined();
  });

  test("B122: an unreachable URL is asked for ever, with a message", async () => {
    const of = world(undefined);
    let tries = 0;
    const find = async (): Promise<Source> => {
      tries += 1;
      if (tries < 5)
        return {
          kind: "failed",
          error: { code: "refused", message: "connection refused" },
          retryable: true,
          notes: [],
        };
      const text = "role: single\n";
      const sha256 = sha256Of(text);
      return { kind: "found", text, origin: "corium.config=https://x/", sha256, pinned: false, notes: [] };
    };
    expect(await bootstrap(services(of, { findDocument: find }))).toBe(0);
    expect(tries).toBe(5);
  });

  test("a seed is the document of a first boot from disk; in service the stick may go, or say something else", async () => {
    const of = world(undefined);
    const text = "role: single\nnode: {name: seeded}\n";
    const file = { origin: "config.yaml on /dev/sdb1 (CORIUM)", isOurs: true, content: ok(Buffer.from(text)) };
    const readSeeds = async () => ok({ files: [file], notes: [] });
    const find = (): Promise<Source> => findDocument(of.host, { paths, cmdline: "", readSeeds });
    expect(await bootstrap(services(of, { findDocument: find }))).toBe(0);
    expect(of.state.baseline.get()?.document).toMatchObject({ origin: file.origin, text });
    const gone = (): Promise<Source> => Promise.reject(new Error("a node in service looked for a seed"));
    expect(await bootstrap(services(of, { findDocument: gone }))).toBe(0);
    expect(of.state.baseline.get()?.document.text).toBe(text);
  });

  test("a unit that loops is a failure with its journal, and a retry goes on without a second installation", async () => {
    const of = world(plain);
    const k0s = fakeK0s({ poison: "corium" });
    of.host.programs.set("k0s", k0s.program);
    expect(await bootstrap(services(of))).toBe(1);
    expect(statusOf(of)?.error?.join("\n")).toContain("unknown flag");
    const destroyed = of.destroyed.length;
    delete k0s.poison;
    const unit = of.host.unitTable.get("k0scontroller.service");
    if (unit !== undefined) unit.restarts = 0;
    expect(await bootstrap(services(of))).toBe(0);
    expect(of.destroyed.length).toBe(destroyed);
    expect(of.state.operations.list().map(({ phase }) => phase)).toEqual(["succeeded", "failed"]);
  });

  test("no secret of the document reaches the operation, the status, an event or a call", async () => {
    const document = `role: controller
cluster: {endpoint: 192.168.1.50}
ha: {enabled: true, virtualIP: 192.168.1.50/24, interface: eth0, authPass: s3cr3t!!}
`;
    const of = world(document);
    expect(await bootstrap(services(of))).toBe(0);
    const said = JSON.stringify([
      of.state.operations.list(),
      of.state.events.last(),
      of.state.journal.intents(),
      of.host.calls,
    ]);
    expect(said + (of.host.text("/run/corium/bootstrap.json") ?? "")).not.toContain("s3cr3t!!");
    expect(of.host.text("/etc/k0s/k0s.yaml")).toContain("s3cr3t!!");
  });
});
