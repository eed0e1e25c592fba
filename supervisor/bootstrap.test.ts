import { describe, expect, test } from "bun:test";
import type { Source } from "../config/driver.ts";
import type { Disk, Inventory } from "../kit/disk.ts";
import type { BootFacts } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import type { Executors, StepContext } from "../kit/step.ts";
import type { StorageStep } from "../provision/storage.ts";
import type { State } from "../state/open.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { findDocument } from "../config/driver.ts";
import { k0sExecutors } from "../k0s/driver.ts";
import { nodePaths } from "../kit/paths.ts";
import { ok } from "../kit/result.ts";
import { mintAuthority } from "../pki/driver.ts";
import { realRandom } from "../host/random.ts";
import { nodeExecutors } from "../provision/steps.ts";
import { wireguardExecutors } from "../wireguard/driver.ts";
import { memoryState } from "../state/open.ts";
import { fakeHost, MachineDied } from "../test/support/fake-host.ts";
import { fakeK0s } from "../test/support/fake-k0s.ts";
import { machine } from "../test/machines/machines.ts";
import { bootstrap } from "./bootstrap.ts";
import { parseBootstrapStatus } from "./bootstrap-status.ts";
import { createReporter } from "./reporter.ts";

/** Disks as far as first boot goes: members of an array, and the filesystem on it. */
interface World {
  readonly host: FakeHost;
  readonly state: State;
  readonly members: Map<string, string>;
  filesystem: string | undefined;
  readonly destroyed: string[];
  isMounted: boolean;
}

const paths = nodePaths();
const addresses = JSON.stringify([
  { ifname: "lo", flags: ["LOOPBACK", "UP"], addr_info: [] },
  {
    ifname: "eth0",
    flags: ["UP", "LOWER_UP"],
    addr_info: [{ family: "inet", local: "192.168.1.10", prefixlen: 24, scope: "global" }],
  },
]);

const plain = `role: single
raid:
  - {name: data, level: 1, devices: [{serial: A}, {serial: B}], mountPoint: /var/lib/k0s}
upgrades: {automatic: download, schedule: "Sun 03:00"}
`;

function world(document: string | undefined, more: Readonly<Record<string, string>> = {}): World {
  const state = memoryState();
  const k0s = fakeK0s();
  const made: World = {
    state,
    members: new Map(),
    filesystem: undefined,
    destroyed: [],
    isMounted: false,
    host: fakeHost({
      files: {
        "/proc/meminfo": "MemTotal: 4000000 kB\n",
        "/proc/sys/kernel/hostname": "corium\n",
        "/proc/sys/kernel/osrelease": "6.12.0\n",
        "/sys/fs/cgroup/cgroup.controllers": "cpu\n",
        "/run/systemd/timesync/synchronized": "",
        "/usr/lib/clock-epoch": "",
        "/var/lib/corium/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        ...(document === undefined ? {} : { "/usr/share/corium/config.yaml": document }),
        ...more,
      },
      programs: {
        k0s: k0s.program,
        ip: ({ argv }) => (argv.includes("addr") ? addresses : "[]"),
        hostname: ({ argv }, fake) => {
          fake.put("/proc/sys/kernel/hostname", `${argv[1] ?? ""}\n`);
          return "";
        },
        storage: ({ argv: [, verb, uuid = "", ...serials] }) => {
          if (verb === "create") {
            made.destroyed.push(...serials);
            for (const serial of serials) made.members.set(serial, uuid);
            made.filesystem = undefined;
          }
          if (verb === "mkfs") made.filesystem = uuid;
          if (verb === "mount") made.isMounted = true;
          return "";
        },
      },
    }),
  };
  return made;
}

/** What the storage rooms do to disks, in one call each; their own crash tests are theirs. */
function storageExecutors(of: World): Executors<StorageStep> {
  const does = async ({ host }: StepContext, ...argv: string[]) => {
    await host.exec({ argv: ["storage", ...argv] });
    return ok(undefined);
  };
  const state = (isDone: boolean) => ok(isDone ? ("done" as const) : ("todo" as const));
  return {
    "disk:wipe": {
      argv: () => [],
      check: async () => state(of.members.size === 0),
      run: (_, context) => does(context, "wipe"),
    },
    "disk:filesystem": {
      argv: () => [],
      check: async ({ uuid }) => state(of.filesystem === uuid),
      run: ({ uuid }, context) => does(context, "mkfs", uuid),
    },
    "disk:mount": {
      argv: () => [],
      check: async ({ files }, { host }) => state(of.isMounted && (await areWritten(host, files))),
      run: async ({ files }, context) => {
        await writeAll(context.host, files);
        return does(context, "mount");
      },
    },
    "raid:create": {
      argv: () => [],
      check: async ({ uuid }) => state([..."AB"].every((serial) => of.members.get(serial) === uuid)),
      run: ({ uuid, members }, context) =>
        does(context, "create", uuid, ...members.map(({ identity }) => identity.serial ?? "")),
    },
    "raid:assemble": { argv: () => [], check: async () => state(true), run: (_, context) => does(context, "assemble") },
    "raid:config": {
      argv: () => [],
      check: async ({ files }, { host }) => state(await areWritten(host, files)),
      run: async ({ files }, { host }) => {
        await writeAll(host, files);
        return ok(undefined);
      },
    },
  };
}

async function areWritten(host: Host, files: readonly RenderedFile[]): Promise<boolean> {
  for (const { path, content } of files) {
    const text = await host.files.readText(path);
    if (!text.ok || text.value !== content) return false;
  }
  return true;
}

async function writeAll(host: Host, files: readonly RenderedFile[]): Promise<void> {
  for (const { path, content, mode } of files) await host.files.write(path, content, { mode });
}

function inventoryOf(of: World): Inventory {
  const blank = machine("blank-pair");
  const uuids = [...new Set(of.members.values())];
  const disks = blank.disks.map((disk): Disk => {
    const uuid = of.members.get(disk.identity.serial ?? "");
    if (uuid === undefined) return disk;
    return {
      ...disk,
      signatures: [{ type: "linux_raid_member", device: disk.path, where: "whole disk", uuid, label: "any:data" }],
    };
  });
  const arrays = uuids.map((uuid) => ({
    uuid,
    name: "data",
    level: "raid1",
    memberPaths: disks.filter((disk) => of.members.get(disk.identity.serial ?? "") === uuid).map((disk) => disk.path),
    expectedMembers: 2,
    ...(of.filesystem === undefined ? {} : { filesystemUuid: of.filesystem }),
  }));
  return { disks, arrays, unknown: [] };
}

function services(of: World, changes: Partial<BootstrapServices> = {}): BootstrapServices {
  const { host, state } = of;
  const boot: BootFacts = { mode: "disk" };
  return {
    host: withLinks(host),
    paths,
    boot,
    version: "0.1.0",
    cmdline: "",
    reporter: createReporter(host.files, paths.runDir, "bootstrap", () => undefined),
    // Here every process is this one; one that died left its operation behind.
    state: {
      ...state,
      operations: {
        ...state.operations,
        abandoned: () => {
          const running = state.operations.running();
          return running === undefined ? [] : [running];
        },
      },
    },
    findDocument: (): Promise<Source> => findDocument(host, { paths, boot, cmdline: "" }),
    readInventory: async () => ok(inventoryOf(of)),
    executors: (ports) => ({
      ...nodeExecutors(ports),
      ...storageExecutors(of),
      ...wireguardExecutors,
      ...k0sExecutors,
    }),
    installExecutors: () => {
      throw new Error("a node that boots from disk installs nothing");
    },
    ...changes,
  };
}

/** `systemctl enable` makes a link, which is what has to be kept; the fake only remembers. */
function withLinks(host: FakeHost): FakeHost {
  const enable = async (unit: string) => {
    const enabled = await host.systemd.enable(unit);
    const target = `/etc/systemd/system/${unit}`;
    if (enabled.ok) host.put(`/etc/systemd/system/multi-user.target.wants/${unit}`, "", { kind: "symlink", target });
    return enabled;
  };
  return { ...host, systemd: { ...host.systemd, enable } };
}

function joinToken(user: string, ca: string): string {
  const authority = Buffer.from(ca).toString("base64");
  const kubeconfig = {
    clusters: [{ cluster: { server: "https://192.0.2.10:6443", "certificate-authority-data": authority } }],
    contexts: [{ name: "k0s", context: { user } }],
    "current-context": "k0s",
    users: [{ name: user, user: { token: "abcdef.0123456789abcdef" } }],
  };
  return gzipSync(JSON.stringify(kubeconfig)).toString("base64");
}

const statusOf = ({ host }: World) => parseBootstrapStatus(host.text("/run/corium/bootstrap.json") ?? "");
/** What makes a node: files that are kept, disks, unit, records. UUIDs by order of appearance: chosen anew, yet the same everywhere. */
function nodeOf(of: World): unknown {
  const names = new Map<string, string>();
  const node = {
    members: [...of.members].toSorted(([a], [b]) => a.localeCompare(b)),
    filesystem: of.filesystem,
    kept: of.host.paths("/var/lib/corium/etc").map((path) => [path, of.host.text(path)]),
    k0s: of.host.unitTable.get("k0scontroller.service")?.activeState,
    marker: of.host.text(paths.marker) !== undefined,
    baseline: of.state.baseline.get()?.hostname,
    operations: of.state.operations.list().map(({ kind, phase }) => [kind, phase]),
    owned: of.state.owned.list().map(({ name, uuid, filesystemUuid }) => [name, uuid, filesystemUuid]),
  };
  // JSON, systemd's escapes and md's colons are only other ways to write one.
  const text = JSON.stringify(node, null, 1).replaceAll("\\\\x2d", "-");
  const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}(?::[0-9a-f]{8}){3}/g;
  return text.replace(uuid, (found) => {
    const key = found.replace(/[-:]/g, "");
    names.set(key, names.get(key) ?? `uuid ${names.size + 1}`);
    return names.get(key) ?? "";
  });
}

function powerOn(of: World): void {
  of.isMounted = false;
  of.host.boot();
  // The fake takes a unit for enabled because it was; systemd looks for the link, which must have been kept.
  const unit = of.host.unitTable.get("k0scontroller.service");
  const link = "/etc/systemd/system/multi-user.target.wants/k0scontroller.service";
  if (unit !== undefined && of.host.node(link) === undefined) {
    Object.assign(unit, { isEnabled: false, activeState: "inactive", subState: "dead" });
  }
}

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
  }, 60_000);

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
    const mint = async (nowMs: number) => mintAuthority({ commonName: "cluster", nowMs, random: realRandom });
    const [old, ca] = [await mint(0), await mint(of.host.clock.nowMs())];
    of.host.put("/var/lib/corium/token", joinToken("kubelet-bootstrap", old.certificate));
    expect(await bootstrap(services(of))).toBe(1);
    expect(statusOf(of)?.error?.join("\n")).toContain("the cluster CA in join.tokenFrom has expired");
    of.host.put("/var/lib/corium/token", joinToken("controller-bootstrap", ca.certificate));
    expect(await bootstrap(services(of))).toBe(1);
    const said = statusOf(of)?.error?.join("\n") ?? "";
    expect(said).toContain("holds a token for a controller, this node is a worker");
    expect(said).toContain("k0s token create --role worker");
    expect(said).not.toContain("abcdef.0123456789abcdef");
    expect(of.host.text("/etc/hostname")).toBeUndefined();
    expect(of.host.text("/etc/k0s/join-token")).toBeUndefined();
    const good = joinToken("kubelet-bootstrap", ca.certificate);
    of.host.put("/var/lib/corium/token", `${good}\n`);
    expect(await bootstrap(services(of))).toBe(0);
    expect(of.host.text("/etc/k0s/join-token")).toBe(`${good}\n`);
    expect(statusOf(of)?.warnings?.join()).toContain('leads to "192.0.2.10", the endpoint is "k.example"');
    expect(of.state.operations.list().map(({ phase }) => phase)).toEqual(["succeeded", "failed", "failed"]);
  });

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
      const sha256 = createHash("sha256").update(text).digest("hex");
      return { kind: "found", text, origin: "corium.config=https://x/", sha256, pinned: false, notes: [] };
    };
    expect(await bootstrap(services(of, { findDocument: find }))).toBe(0);
    expect(tries).toBe(5);
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
