/** What a reset will do, in words and in steps. Pure: what was read of machine and records → what is erased, kept, left. */
import type { Role } from "../../config/document.ts";
import { describeDisk, describeIdentity } from "../../disks/describe.ts";
import { wipeStep } from "../../disks/plan.ts";
import type { Disk, DiskIdentity, Inventory, OwnedStorage } from "../../kit/disk.ts";
import { sameDisk } from "../../kit/disk.ts";
import { headerPath } from "../../luks/argv.ts";
import { arrayPath } from "../../raid/argv.ts";
import type { EraseStep, LeaveStep, ResetScrubStep, Standing } from "./model.ts";
import type { MountUnit } from "./mounts.ts";
import { K0S_FOLDERS } from "./mounts.ts";

export interface ResetInput {
  readonly hostname: string;
  readonly role?: Role;
  readonly cluster?: string;
  readonly standing: Standing;
  readonly isWipingDisks: boolean;
  readonly owned: readonly OwnedStorage[];
  readonly inventory: Inventory;
  readonly mounts: readonly MountUnit[];
  /** Volumes whose passphrase is kept in a file. */
  readonly passphraseVolumes: readonly string[];
}

export interface ResetPlan {
  readonly leave: readonly LeaveStep[];
  readonly erase: readonly EraseStep[];
  readonly erased: readonly string[];
  readonly kept: readonly string[];
  /** On this machine or elsewhere, by nobody. */
  readonly left: readonly string[];
  /** Not done, and why. */
  readonly skipped: readonly string[];
}

export function planReset(input: ResetInput): ResetPlan {
  const { hostname, isWipingDisks } = input;
  const { here, absent } = ownDisks(input);
  const wipes = isWipingDisks ? here.map((disk) => wipeStep(`reset:wipe:${idOf(disk.identity)}`, disk)) : [];
  return {
    leave: leaveSteps(input),
    erase: [
      { kind: "reset:stop", id: "reset:stop", title: "stop k0s and every pod" },
      { kind: "reset:unmount", id: "reset:unmount", title: "unmount what k0s and the document mounted" },
      { kind: "reset:k0s", id: "reset:k0s", title: "take k0s off the machine" },
      ...(isWipingDisks ? scrubSteps(input) : []),
      ...wipes,
      { kind: "reset:files", id: "reset:files", title: "remove overlay, units, timers, keys and the document" },
      { kind: "reset:state", id: "reset:state", title: "forget claim, documents and records" },
    ],
    erased: [
      `what makes this machine ${hostname}${input.cluster === undefined ? "" : ` of cluster ${input.cluster}`}: its document, rendered files, units, timers, overlay keys`,
      "k0s with its data: certificates, etcd or its database, images, pods and their volumes on the system's own disk",
      "the claim and its operator CA, the API's key (the node will show another fingerprint), events, audit, operations",
      ...(input.passphraseVolumes.length === 0
        ? []
        : [`the passphrase files of encrypted volumes: ${input.passphraseVolumes.join(", ")}`]),
      ...(isWipingDisks
        ? here.map((disk) => `data disk ${describeDisk(disk)}, with ${usesOf(disk.identity, input)}`)
        : []),
    ],
    kept: [
      "the installed system, both slots, the boot environment, the machine-id",
      ...(isWipingDisks ? [] : keptOnes(input)),
    ],
    left: [
      "files that people or pods put below /srv, /mnt, /opt and /var on the system's own disk",
      ...absent.map((disk) => `data disk ${describeIdentity(disk)}, which is not here: ${usesOf(disk, input)}`),
      ...leftInCluster(input),
    ],
    skipped: skippedOf(input),
  };
}

/** Volumes before the arrays that they may lie on. */
function scrubSteps({ owned, inventory }: ResetInput): readonly ResetScrubStep[] {
  return (["luks", "raid"] as const).flatMap((kind) =>
    owned
      .filter((each) => each.kind === kind)
      .flatMap(({ name, uuid, disks }): ResetScrubStep[] => {
        const destroys = disks.filter((disk) => inventory.disks.some((each) => sameDisk(each.identity, disk)));
        if (destroys.length === 0) return [];
        const [what, path] = kind === "luks" ? ["volume", headerPath(uuid)] : ["array", arrayPath(uuid)];
        return [
          {
            kind: "reset:scrub",
            id: `reset:scrub:${kind}:${name}`,
            title: `destroy what is in ${what} ${name}`,
            path,
            destroys,
            ...(kind === "luks" ? { volume: { name, uuid } } : {}),
          },
        ];
      }),
  );
}

function leaveSteps({ hostname, role, standing }: ResetInput): readonly LeaveStep[] {
  if (standing.kind !== "member") return [];
  const hasKubelet = role === "controller+worker";
  // As Kubernetes calls it.
  const node = hostname.toLowerCase();
  return [
    ...(hasKubelet
      ? [
          {
            kind: "reset:drain",
            id: "reset:drain",
            title: `drain ${hostname}, as far as it goes`,
            node,
          } as const,
        ]
      : []),
    {
      kind: "reset:leave",
      id: "reset:leave",
      title: `leave etcd as ${standing.member}`,
      member: standing.member,
      ...(hasKubelet ? { node } : {}),
    },
  ];
}

function skippedOf({ hostname, role, standing }: ResetInput): readonly string[] {
  const drain = `draining: this node can't move pods by itself; on a controller: kubectl drain ${hostname}`;
  switch (standing.kind) {
    case "none":
      return ["draining and leaving etcd: k0s does not run here"];
    case "worker":
      return [drain, "leaving etcd: a worker is no member"];
    case "last":
      return ["draining and leaving etcd: there is no other node that pods could go to, and no other member"];
    case "gone":
      return ["leaving etcd: it lists this node no more"];
    case "silent":
      return [`draining and leaving etcd: ${standing.reason}`];
    case "member":
      return role === "controller+worker" ? [] : ["draining: no pods run on a controller without a kubelet"];
    default:
      return standing satisfies never;
  }
}

function leftInCluster({ hostname, standing }: ResetInput): readonly string[] {
  switch (standing.kind) {
    case "worker":
      return [`the Node object ${hostname} in the cluster; on a controller: kubectl delete node ${hostname}`];
    case "silent":
      return [
        `this node's place in etcd, if other members live; on one of them: k0s etcd leave --peer-address ADDRESS, kubectl delete node ${hostname}`,
      ];
    case "none":
    case "last":
    case "gone":
    case "member":
      return [];
    default:
      return standing satisfies never;
  }
}

function keptOnes({ owned, mounts }: ResetInput): readonly string[] {
  const risky = mounts.filter(({ point }) => K0S_FOLDERS.some((folder) => point === folder));
  return [
    ...owned.map(({ kind, name, disks }) => {
      const what = { disk: "data disk", raid: "array", luks: "encrypted volume" }[kind];
      return `${what} ${name} on ${disks.map(describeIdentity).join(", ")}: a document that names it takes it over`;
    }),
    ...risky.map(
      ({ point }) =>
        `the data of k0s itself on what is mounted at ${point}: a node that gets the same disk starts with them; --wipe-disks erases them`,
    ),
  ];
}

const usesOf = (disk: DiskIdentity, { owned }: ResetInput): string =>
  owned
    .filter(({ disks }) => disks.some((each) => sameDisk(each, disk)))
    .map(({ kind, name }) => `${{ disk: "disk", raid: "array", luks: "volume" }[kind]} ${name}`)
    .join(", ");

function ownDisks({ owned, inventory }: ResetInput): {
  readonly here: readonly Disk[];
  readonly absent: readonly DiskIdentity[];
} {
  const wanted = owned
    .flatMap(({ disks }) => disks)
    .filter((disk, at, all) => all.findIndex((other) => sameDisk(other, disk)) === at);
  const isHere = (disk: DiskIdentity): boolean => inventory.disks.some((each) => sameDisk(each.identity, disk));
  return {
    // Whatever a record says: never what this system stands on, or came from.
    here: inventory.disks.filter(
      (disk) => !disk.isSystemDisk && !disk.isBootMedium && wanted.some((each) => sameDisk(each, disk.identity)),
    ),
    absent: wanted.filter((disk) => !isHere(disk)),
  };
}

const idOf = ({ serial, wwn, byPath }: DiskIdentity): string => serial ?? wwn ?? byPath ?? "disk";
