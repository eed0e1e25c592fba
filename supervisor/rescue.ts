/**
 * What the rescue menu looks at and does. On the system's own rescue boot it works on the state that is mounted; from
 * the medium on each installed disk, mounted only for as long as it takes.
 */
import type { AppError } from "../kit/app-error.ts";
import { appError, fail } from "../kit/app-error.ts";
import type { Disk, Inventory, Partition } from "../kit/disk.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import { nodePaths } from "../kit/paths.ts";
import type { ExecResult, Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import { describeDisk } from "../disks/describe.ts";
import { PARTITIONS } from "../iso/layout.ts";
import type { Secret } from "../kit/secret.ts";
import type { unlockVolume } from "../luks/driver.ts";
import { globalAddresses, parseLinks } from "../provision/facts.ts";
import { standingOf } from "../provision/install/standing.ts";
import type { State } from "../state/open.ts";
import { markErasing, writeResetIntent } from "./reset-files.ts";
import type { Volumes } from "./volumes.ts";

/** An installed Corium that can be re-keyed. */
export interface InstalledSystem {
  /** `/dev/vda7`. */
  readonly device: string;
  readonly name: string;
  readonly disk: string;
  /** Why it can't be worked on. */
  readonly problem?: string;
}

/** A partition of an installed system that holds ext4. */
export interface FilesystemSeen {
  readonly device: string;
  readonly what: "state" | "data";
  readonly disk: string;
  readonly isMounted: boolean;
  readonly problem?: string;
}

export interface RescueSight {
  readonly isLive: boolean;
  readonly hostname: string;
  readonly systems: readonly InstalledSystem[];
  readonly filesystems: readonly FilesystemSeen[];
  readonly addresses: readonly string[];
  readonly problems: readonly string[];
}

export interface Rescue {
  look(): Promise<Result<RescueSight, AppError>>;
  /** The fingerprint of the CA that commands it no more. */
  reKey(device: string): Promise<Result<string, AppError>>;
  /** Recorded for the system's next boot, which carries it out. */
  reset(device: string, isWipingDisks: boolean): Promise<Result<readonly string[], AppError>>;
  /** Lines of e2fsck. */
  repair(device: string): Promise<Result<readonly string[], AppError>>;
  /** Names of the encrypted volumes of this node that are closed. */
  lockedVolumes(): Promise<Result<readonly string[], AppError>>;
  /** Opens one, and starts nothing that waits for it; lines about what did not work after that. */
  unlock(name: string, key: Secret): Promise<Result<readonly string[], AppError>>;
  askForAddresses(): Promise<Result<readonly string[], AppError>>;
  leave(way: "start" | "reboot" | "poweroff"): Promise<Result<void, AppError>>;
}

export interface RescueInput {
  readonly host: Host;
  readonly paths: Paths;
  readonly boot: BootFacts;
  readonly readInventory: () => Promise<Result<Inventory, AppError>>;
  /** Loaded only now: SQLite needs a place to unpack to, and the menu must come up without one. */
  readonly openState: (paths: Pick<Paths, "database" | "marker">) => Promise<Result<State, AppError>>;
  readonly reKey: (state: State, atMs: number) => Result<string, AppError>;
  readonly volumesOf: (state: State) => Pick<Volumes, "known" | "read">;
  readonly unlock: typeof unlockVolume;
}

const CHECK_TIMEOUT_MS = 3_600_000;
const ADDRESS_TRIES = 20;

export function createRescue(input: RescueInput): Rescue {
  const { host, paths, boot } = input;
  const folder = `${paths.runDir}/rescue`;
  const isLive = boot.mode === "live";

  async function see(): Promise<Result<RescueSight, AppError>> {
    const inventory = await input.readInventory();
    if (!inventory.ok) return inventory;
    const [mounts, hostname, addresses] = await Promise.all([
      host.files.readText("/proc/self/mounts"),
      host.files.readText("/proc/sys/kernel/hostname"),
      readAddresses(),
    ]);
    const found = filesystemsOf(inventory.value, boot, mounts.ok ? mounts.value : "");
    const filesystems = isLive ? found : await inArrays(found, mounts.ok ? mounts.value : "");
    const name = hostname.ok ? hostname.value.trim() : "";
    const systems: InstalledSystem[] = [];
    for (const { device, disk, problem } of filesystems.filter(({ what }) => what === "state")) {
      const read = problem !== undefined ? err(appError("state", problem)) : isLive ? await nameOn(device) : ok(name);
      const difficulty = problem ?? (read.ok ? undefined : read.error.message);
      systems.push({
        device,
        disk,
        name: read.ok ? read.value : "unknown",
        ...(difficulty === undefined ? {} : { problem: difficulty }),
      });
    }
    return ok({ isLive, hostname: name, systems, filesystems, addresses, problems: boot.problems ?? [] });
  }

  /** A mirrored system's own file systems are on arrays, which the initramfs has started. */
  async function inArrays(own: readonly FilesystemSeen[], mounts: string): Promise<readonly FilesystemSeen[]> {
    const seenHere: FilesystemSeen[] = [];
    for (const each of own) {
      const array = await host.files.realpath(`/dev/md/corium-${each.what}`);
      const { what, disk } = each;
      if (!array.ok) seenHere.push(each);
      else if (seenHere.every((other) => other.what !== what)) {
        seenHere.push({ device: array.value, what, disk, isMounted: isMountedIn(mounts, array.value) });
      }
    }
    return seenHere;
  }

  /** `noload`: the journal is not replayed, so that looking writes nothing. */
  const nameOn = (device: string): Promise<Result<string, AppError>> =>
    whileMounted(device, "ro,noload", async () => {
      const text = await host.files.readText(`${folder}/etc/hostname`, { maxBytes: 256 });
      return ok(text.ok && text.value.trim() !== "" ? text.value.trim() : "corium");
    });

  async function whileMounted<T>(
    device: string,
    options: string,
    work: () => Promise<Result<T, AppError>>,
  ): Promise<Result<T, AppError>> {
    const made = await host.files.mkdir(folder, { mode: 0o700 });
    if (!made.ok) return made;
    const mounted = await host.exec({ argv: ["mount", "-t", "ext4", "-o", options, device, folder] });
    if (mounted.exitCode !== 0) return fail("mount", `${device} can't be mounted: ${lastLine(mounted)}`);
    const done = await work();
    const left = await host.exec({ argv: ["umount", folder] });
    if (done.ok && left.exitCode !== 0) return fail("mount", `${device} can't be unmounted: ${lastLine(left)}`);
    return done;
  }

  async function withState<T>(
    of: Pick<Paths, "database" | "marker">,
    work: (state: State) => Result<T, AppError> | Promise<Result<T, AppError>>,
  ): Promise<Result<T, AppError>> {
    const there = await host.files.stat(of.database);
    // An empty one would be made, and its node would be nobody's.
    if (!there.ok || there.value === null) return fail("no-state", "there is no database of a node");
    const state = await input.openState(of);
    if (!state.ok) return state;
    try {
      return await work(state.value);
    } finally {
      state.value.close();
    }
  }

  const reKeyIn = (of: Pick<Paths, "database" | "marker">): Promise<Result<string, AppError>> =>
    withState(of, (state) => input.reKey(state, host.clock.nowMs()));

  /** Which volumes are whose stands in the state of the node that is started. */
  const withVolumes = <T>(work: (state: State) => Promise<Result<T, AppError>>): Promise<Result<T, AppError>> =>
    isLive
      ? Promise.resolve(
          fail("live", "from the medium no node's volumes are known", {
            hint: "take the rescue entry in the boot menu of the node's own disk",
          }),
        )
      : withState(paths, work);

  async function readAddresses(): Promise<readonly string[]> {
    const links = parseLinks((await host.exec({ argv: ["ip", "-j", "-d", "addr"], timeoutMs: 5_000 })).stdout);
    if (!links.ok) return [];
    return links.value
      .filter(({ isLoopback }) => !isLoopback)
      .flatMap((link) => {
        const found = globalAddresses(link).map(({ address, prefix }) => `${link.name} ${address}/${prefix}`);
        return found.length === 0 ? [`${link.name} no address`] : found;
      });
  }

  /** On the state partition of an installed system, wherever that is mounted now. */
  async function onState<T>(
    device: string,
    work: (of: Paths) => Promise<Result<T, AppError>>,
  ): Promise<Result<T, AppError>> {
    const sight = await see();
    if (!sight.ok) return sight;
    const system = sight.value.systems.find((each) => each.device === device);
    if (system === undefined) return fail("gone", `${device} is not there any more`);
    if (system.problem !== undefined) return fail("state", system.problem);
    return isLive ? whileMounted(device, "rw", () => work(nodePaths(folder))) : work(paths);
  }

  /** Needs no database: this is also the way out of one that is lost. k0s does not run here, so that etcd can't be left. */
  async function askForReset(of: Paths, isWipingDisks: boolean): Promise<Result<readonly string[], AppError>> {
    const there = await host.files.stat(of.keptEtc);
    // A state that could not be mounted shows as an empty folder.
    if (!there.ok || there.value === null) return fail("no-state", "there is no state of a node");
    const written = await writeResetIntent(host, of, {
      version: 1,
      isWipingDisks,
      mayDestroyCluster: true,
      requestedAtMs: host.clock.nowMs(),
      requestedBy: "somebody at the rescue menu",
      restarts: 0,
    });
    const marked = written.ok ? await markErasing(host, of) : written;
    if (!marked.ok) return marked;
    return ok(["other controllers count it still; on one of them: k0s etcd leave --peer-address ADDRESS"]);
  }

  return {
    look: see,
    reKey: (device) => onState(device, reKeyIn),
    reset: (device, isWipingDisks) => onState(device, (of) => askForReset(of, isWipingDisks)),
    async repair(device) {
      const sight = await see();
      if (!sight.ok) return sight;
      const found = sight.value.filesystems.find((each) => each.device === device);
      if (found === undefined) return fail("gone", `${device} is not there any more`);
      if (found.isMounted) return fail("mounted", `${device} is mounted; it was checked before that`);
      if (found.problem !== undefined) return fail("check", found.problem);
      const ran = await host.exec({ argv: ["e2fsck", "-f", "-y", device], timeoutMs: CHECK_TIMEOUT_MS });
      const said = ran.stdout
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line !== "")
        .slice(-8);
      // 1, 2: errors were there and are corrected (e2fsck(8)).
      if (ran.exitCode !== null && ran.exitCode < 4) return ok([...said, ran.exitCode === 0 ? "clean" : "repaired"]);
      return fail("check", `e2fsck could not repair ${device}: ${lastLine(ran)}`, { details: said });
    },
    lockedVolumes: () =>
      withVolumes(async (state) => {
        const volumes = input.volumesOf(state);
        const reports = await volumes.read(volumes.known());
        return ok(reports.filter((volume) => volume.state === "locked").map(({ name }) => name));
      }),
    unlock: (name, key) =>
      withVolumes(async (state) => {
        const volume = input
          .volumesOf(state)
          .known()
          .find((each) => each.name === name);
        if (volume === undefined) return fail("gone", `there is no volume ${name} any more`);
        const opened = await input.unlock(host, volume, key);
        if (!opened.ok) return opened;
        const message = `volume ${name} was opened at the rescue menu`;
        state.events.add({ atMs: host.clock.nowMs(), kind: "volume-unlocked", severity: "info", message });
        const { isBoundAnew, problem } = opened.value;
        return ok([
          ...(isBoundAnew ? ["the TPM opens it again from the next boot on"] : []),
          ...(problem === undefined ? [] : [`but: ${problem.message}`]),
        ]);
      }),
    async askForAddresses() {
      const restarted = await host.systemd.restart("systemd-networkd.service");
      if (!restarted.ok) return restarted;
      for (let tries = 0; tries < ADDRESS_TRIES; tries++) {
        await host.clock.sleep(500);
        const addresses = await readAddresses();
        if (addresses.some((line) => !line.endsWith("no address"))) return ok(addresses);
      }
      return ok(await readAddresses());
    },
    async leave(way) {
      const verb = way === "start" ? ["isolate", "multi-user.target"] : [way];
      const ran = await host.exec({ argv: ["systemctl", "--no-block", ...verb], timeoutMs: 30_000 });
      return ran.exitCode === 0 ? ok(undefined) : fail("systemd", `systemctl ${way} failed: ${lastLine(ran)}`);
    },
  };
}

const lastLine = ({ stdout, stderr, exitCode }: ExecResult): string =>
  (stderr.trim() === "" ? stdout : stderr).trim().split("\n").at(-1) || `exit status ${exitCode}`;

/** From disk only the partitions that this boot came from; from the medium those of each installed disk. */
function filesystemsOf(inventory: Inventory, boot: BootFacts, mounts: string): readonly FilesystemSeen[] {
  const own = boot.partUuids;
  const isOwn = ({ partUuid }: Partition): boolean =>
    own !== undefined && partUuid !== undefined && [own.state, own.data].includes(partUuid.toLowerCase());
  return inventory.disks
    .filter((disk) => (boot.mode === "live" ? standingOf(disk) === "installed" : disk.partitions.some(isOwn)))
    .flatMap((disk) =>
      disk.partitions.flatMap((partition) => {
        const role = PARTITIONS.find(({ number }) => number === partition.number)?.role;
        if (role !== "state" && role !== "data") return [];
        if (boot.mode !== "live" && !isOwn(partition)) return [];
        const isHalf = boot.mode !== "live" && boot.isMirrored === true;
        return [isHalf ? half(disk, partition, role) : seen(disk, partition, role, mounts)];
      }),
    );
}

/** Of the array that is mounted; it was checked before that. */
const half = (disk: Disk, { path }: Partition, what: "state" | "data"): FilesystemSeen => ({
  device: path,
  what,
  disk: describeDisk(disk),
  isMounted: true,
});

const isMountedIn = (mounts: string, device: string): boolean =>
  mounts.split("\n").some((line) => line.startsWith(`${device} `));

function seen(disk: Disk, { path }: Partition, what: "state" | "data", mounts: string): FilesystemSeen {
  const types = disk.signatures.filter(({ device }) => device === path).map(({ type }) => type);
  const isMounted = isMountedIn(mounts, path);
  // Written to on its own, a member of a mirror would part from the other one.
  const problem = types.some((type) => type !== "ext4")
    ? `it holds ${types.join(", ")}, not ext4 alone`
    : types.length === 0 && !isMounted
      ? "no filesystem is seen on it"
      : undefined;
  return { device: path, what, disk: describeDisk(disk), isMounted, ...(problem === undefined ? {} : { problem }) };
}
