/** A machine before its first boot, for tests of the whole of it: disks in a few words, k0s and files as on a node. */
import type { Source } from "../../config/source.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { BootFacts } from "../../kit/paths.ts";
import type { Host } from "../../kit/ports.ts";
import type { RenderedFile } from "../../kit/rendered.ts";
import type { Executors, StepContext } from "../../kit/step.ts";
import type { StorageStep } from "../../provision/storage.ts";
import type { State } from "../../state/open.ts";
import type { FakeHost } from "./fake-host.ts";
import type { BootstrapServices } from "../../supervisor/bootstrap-services.ts";
import { gzipSync } from "node:zlib";
import { findDocument } from "../../config/driver.ts";
import { k0sExecutors } from "../../k0s/driver.ts";
import { nodePaths } from "../../kit/paths.ts";
import { ok } from "../../kit/result.ts";
import { luksExecutors } from "../../luks/steps/driver.ts";
import { nodeExecutors } from "../../provision/steps.ts";
import { wireguardExecutors } from "../../wireguard/driver.ts";
import { memoryState } from "../../state/open.ts";
import { fakeHost } from "./fake-host.ts";
import { fakeK0s } from "./fake-k0s.ts";
import { machine } from "../machines/machines.ts";
import { parseBootstrapStatus } from "../../supervisor/bootstrap-status.ts";
import { createReporter } from "../../supervisor/reporter.ts";

/** Disks as far as first boot goes: members of an array, and the filesystem on it. */
export interface World {
  readonly host: FakeHost;
  readonly state: State;
  readonly members: Map<string, string>;
  filesystem: string | undefined;
  readonly destroyed: string[];
  isMounted: boolean;
}

export const paths = nodePaths();
const addresses = JSON.stringify([
  { ifname: "lo", flags: ["LOOPBACK", "UP"], addr_info: [] },
  {
    ifname: "eth0",
    flags: ["UP", "LOWER_UP"],
    addr_info: [{ family: "inet", local: "192.168.1.10", prefixlen: 24, scope: "global" }],
  },
]);

export const plain = `role: single
raid:
  - {name: data, level: 1, devices: [{serial: A}, {serial: B}], mountPoint: /var/lib/k0s}
upgrades: {automatic: download, schedule: "Sun 03:00"}
`;

export function world(document: string | undefined, more: Readonly<Record<string, string>> = {}): World {
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
    "disk:unmount": { argv: () => [], check: async () => state(true), run: (_, context) => does(context, "unmount") },
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
    ...luksExecutors,
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

export function services(of: World, changes: Partial<BootstrapServices> = {}): BootstrapServices {
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
export function withLinks(host: FakeHost): FakeHost {
  const enable = async (unit: string) => {
    const enabled = await host.systemd.enable(unit);
    const target = `/etc/systemd/system/${unit}`;
    if (enabled.ok) host.put(`/etc/systemd/system/multi-user.target.wants/${unit}`, "", { kind: "symlink", target });
    return enabled;
  };
  return { ...host, systemd: { ...host.systemd, enable } };
}

export function joinToken(user: string, ca: string, server = "https://192.0.2.10:6443"): string {
  const authority = Buffer.from(ca).toString("base64");
  const kubeconfig = {
    clusters: [{ cluster: { server, "certificate-authority-data": authority } }],
    contexts: [{ name: "k0s", context: { user } }],
    "current-context": "k0s",
    users: [{ name: user, user: { token: "abcdef.0123456789abcdef" } }],
  };
  return gzipSync(JSON.stringify(kubeconfig)).toString("base64");
}

export const statusOf = ({ host }: World) => parseBootstrapStatus(host.text("/run/corium/bootstrap.json") ?? "");
/** What makes a node: files that are kept, disks, unit, records. UUIDs by order of appearance: chosen anew, yet the same everywhere. */
export function nodeOf(of: World): unknown {
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

export function powerOn(of: World): void {
  of.isMounted = false;
  of.host.boot();
  // The fake takes a unit for enabled because it was; systemd looks for the link, which must have been kept.
  const unit = of.host.unitTable.get("k0scontroller.service");
  const link = "/etc/systemd/system/multi-user.target.wants/k0scontroller.service";
  if (unit !== undefined && of.host.node(link) === undefined) {
    Object.assign(unit, { isEnabled: false, activeState: "inactive", subState: "dead" });
  }
}
