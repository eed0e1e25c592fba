/** What the node says of itself. Collected when asked; each part on its own, so that one that hangs hides no other. */
import type { HealthAnswer, NodeAnswer } from "../api/contract.ts";
import type { AppError } from "../kit/app-error.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Document } from "../config/document.ts";
import type { Baseline, Operation } from "../state/model.ts";
import type { State } from "../state/open.ts";
import type { BootstrapControl } from "./bootstrap-control.ts";
import type { BootstrapStatus } from "./bootstrap-status.ts";
import { type CertificateEnd, daysLeft, readCertificateEnds, RENEWAL, tellEnds } from "./certificates.ts";
import { readClusterDigest } from "./cluster-digest.ts";
import { type ConfigFacts, type ConfigStatus, configReader } from "./config-status.ts";
import { goneAddresses } from "../provision/addresses.ts";
import { judgeHealth, verdictOf } from "./health.ts";
import { handoverOf } from "./handover-status.ts";
import type { KnownDocument } from "./known-document.ts";
import { documentReader } from "./known-document.ts";
import { type Lost, tellLost } from "./membership-watch.ts";
import type { Readiness } from "../k0s/membership/parse.ts";
import { k0sVersionReader, readMachine } from "./machine.ts";
import { isErasing } from "./reset-files.ts";

type Volumes = NonNullable<NodeAnswer["storage"]["volumes"]>;

/** The domains' own reports; filled by the composition root, which knows them all. */
export interface Collectors {
  arrays(document: Document | undefined): Promise<NodeAnswer["storage"]["arrays"]>;
  mounts(document: Document | undefined): Promise<NodeAnswer["storage"]["mounts"]>;
  volumes(document: Document | undefined): Promise<Volumes>;
  overlay(document: Document | undefined): Promise<NodeAnswer["overlay"]>;
  ha(document: Document | undefined): Promise<NodeAnswer["ha"]>;
  /** Addresses (without prefix) that the machine has now; undefined where that can't be read. */
  addresses(): Promise<readonly string[] | undefined>;
  /** What Kubernetes says of its Node; absent where there is no kubelet that has joined. */
  readiness(document: Document | undefined): Promise<Readiness | undefined>;
  /** Absent while the machine still boots. */
  hardware(): Promise<NodeAnswer["machine"]>;
}

export interface StatusInput {
  readonly host: Host;
  readonly paths: Paths;
  readonly state: State;
  readonly stateProblem?: AppError;
  readonly boot?: BootFacts;
  readonly version: string;
  readonly bootstrap: BootstrapControl;
  readonly collectors: Collectors;
  /** That the cluster does not know this node any more, as it was watched. */
  readonly lost?: () => Lost;
}

export interface Status {
  health(): Promise<HealthAnswer>;
  /** Not older than that; default: as it is now. */
  node(maxAgeMs?: number): Promise<NodeAnswer>;
  config(): Promise<ConfigStatus>;
}

type Phase = NodeAnswer["phase"];

const PART_TIMEOUT_MS = 8_000;

export function createStatus(input: StatusInput): Status {
  const { host, paths, state, collectors } = input;
  const readKnown = documentReader(state);
  const readK0sVersion = k0sVersionReader(host);
  const isInService = (): boolean =>
    state.baseline.get() !== undefined && state.meta.get("in-service-at-ms") !== undefined;
  const problems = (): readonly string[] => [
    ...(input.stateProblem === undefined ? [] : [input.stateProblem.message]),
    ...(input.boot?.problems ?? []),
    // Of a newer release, or damaged: k0s runs on, but nothing can be compared with it any more.
    ...(state.baseline.get() !== undefined && readKnown() === undefined
      ? ["the recorded document can't be read by this release; what runs is left as it is"]
      : []),
  ];
  /** k0s is held back then, and nobody would know why. */
  const halfReset = async (): Promise<readonly string[]> => {
    const erasing = await isErasing(host, paths);
    const isUnderWay = state.operations.running()?.kind === "reset";
    if (!erasing.ok || !erasing.value || isUnderWay) return [];
    return ["a reset has begun to erase this node and is not over: `cctl reset` it again, or restart it"];
  };
  const phaseOf = (bootstrap: BootstrapStatus["state"]): Phase => {
    if (problems().length > 0) return "degraded";
    if (isInService()) return "in-service";
    if (bootstrap === "running") return "provisioning";
    if (state.claim.get() === undefined) return "maintenance";
    return input.boot?.mode === "live" ? "live" : "provisioning";
  };
  const readConfig = configReader(input);
  const configStatus = async (facts: Omit<ConfigFacts, "k0sVersion">): Promise<ConfigStatus> => {
    const open = state.operations.running();
    if (open?.phase === "awaiting-confirmation") return awaitingStatus(open);
    // k0s is a large program to start: not before there is anything to compare with.
    const k0sVersion = state.baseline.get() === undefined ? undefined : await part(readK0sVersion(), undefined);
    return readConfig({ ...facts, k0sVersion });
  };

  const collect = async (): Promise<NodeAnswer> => {
    const known = readKnown();
    const document = known?.document;
    const machine = await readMachine(host);
    const unread: string[] = [];
    const listed = async <T>(name: string, work: Promise<readonly T[]>): Promise<readonly T[]> => {
      const found = await part<readonly T[] | undefined>(work, undefined);
      if (found === undefined) unread.push(name);
      return found ?? [];
    };
    const [digest, bootstrap, kubernetes, arrays, mounts, volumes, overlay, ha, addresses, hardware, ends] =
      await Promise.all([
        readClusterDigest(
          host,
          state.baseline.get() === undefined ? undefined : document,
          state.handover.done()?.stack,
        ),
        input.bootstrap.state(),
        readKubernetes(input, document, readK0sVersion).catch(() => undefined),
        listed("arrays", collectors.arrays(document)),
        listed("mounts", collectors.mounts(document)),
        listed("volumes", collectors.volumes(document)),
        listed("overlay", collectors.overlay(document)),
        part(collectors.ha(document), undefined),
        part(collectors.addresses(), undefined),
        part(collectors.hardware(), undefined),
        part(readCertificateEnds(host, paths, state), []),
      ]);
    const config = await configStatus({ hostname: machine.hostname, arrays, mounts, links: overlay, addresses });
    const nowMs = host.clock.nowMs();
    const phase = phaseOf(bootstrap);
    // An overlay that is down says so itself: no router gives its address back.
    const ofOverlays = overlay.flatMap((each) => each.addresses.map((cidr) => cidr.split("/")[0] ?? ""));
    const checks = judgeHealth({
      problems: [...problems(), ...(await halfReset())],
      isInService: isInService(),
      bootstrap,
      kubernetes,
      unread,
      arrays,
      mounts,
      volumes,
      overlay,
      ha,
      lost: tellLost(input.lost?.() ?? {}),
      ended: tellEnds(
        ends.filter((end) => end.kind !== "api" && end.notAfterMs <= nowMs),
        nowMs,
      ),
      gone:
        addresses === undefined
          ? []
          : goneAddresses(state.baseline.get()?.addresses ?? {}, [...addresses, ...ofOverlays]),
    });
    const claim = state.claim.get();
    const operation = state.operations.running();
    const handover = handoverOf(state, document);
    return {
      hostname: machine.hostname,
      machineID: machine.machineId,
      bootstrapped: isInService(),
      phase,
      ...identityOf(known, state.baseline.get()),
      os: { name: machine.osName, kernel: machine.kernel, booted: bootedOf(input) },
      ...(hardware === undefined ? {} : { machine: hardware }),
      ...(kubernetes === undefined ? {} : { kubernetes }),
      health: { verdict: verdictOf(checks), uptimeSeconds: machine.uptimeSeconds, checks },
      management: {
        ...(claim === undefined ? {} : { claimedBy: claim.fingerprint }),
        ...(claim?.by === "insecure" ? { unauthenticated: true } : {}),
      },
      storage: { arrays, mounts, ...(volumes.length === 0 ? {} : { volumes }) },
      overlay,
      ...(ha === undefined ? {} : { ha }),
      ...(handover === undefined ? {} : { handover }),
      config: {
        state: config.state,
        reasons: config.reasons.map(inWords),
        ...(digest === undefined ? {} : { clusterDigest: digest }),
      },
      certificates: ends.map((end) => certificateOf(end, nowMs)),
      ...(operation === undefined ? {} : { operation: shortOf(operation) }),
    };
  };
  let last: { readonly answer: NodeAnswer; readonly atMs: number } | undefined;
  let looking: Promise<NodeAnswer> | undefined;
  /** Begins when the one that is under way ends. */
  let next: Promise<NodeAnswer> | undefined;
  const look = (): Promise<NodeAnswer> => {
    const begun = collect()
      .then((answer) => {
        last = { answer, atMs: host.clock.monotonicMs() };
        return answer;
      })
      .finally(() => {
        looking = undefined;
      });
    looking = begun;
    return begun;
  };

  return {
    async health() {
      const role = readKnown()?.document.role;
      // In service nothing is asked of other programs: health answers under any load.
      const phase = phaseOf(isInService() ? "done" : await input.bootstrap.state());
      return {
        status: phase === "degraded" ? "degraded" : phase === "maintenance" ? "maintenance" : "ok",
        ...(role === undefined ? {} : { role }),
        version: input.version,
      };
    },
    async config() {
      const document = readKnown()?.document;
      const [{ hostname }, arrays, mounts, links, addresses] = await Promise.all([
        readMachine(host),
        part(collectors.arrays(document), []),
        part(collectors.mounts(document), []),
        part(collectors.overlay(document), []),
        part(collectors.addresses(), undefined),
      ]);
      return configStatus({ hostname, arrays, mounts, links, addresses });
    },
    // Consoles and people ask at the same time: one look at the machine answers them all, but nobody whose question is
    // younger than it: what ended meanwhile would still be under way in it.
    node: (maxAgeMs = 0) => {
      if (last !== undefined && host.clock.monotonicMs() - last.atMs < maxAgeMs) return Promise.resolve(last.answer);
      if (looking === undefined) return look();
      if (maxAgeMs > 0) return looking;
      const again = async (): Promise<NodeAnswer> => {
        next = undefined;
        return look();
      };
      return (next ??= looking.then(again, again));
    },
  };
}

const inWords = ({ message, class: effect }: ConfigStatus["reasons"][number]): string =>
  effect === undefined ? message : `${message} (${effect})`;

/** Its files are neither as recorded nor anybody's doing but the operation's. */
function awaitingStatus({ id, message }: Operation): ConfigStatus {
  const what = message === undefined ? "" : `: ${message}`;
  return { state: "pending", reasons: [{ code: "awaiting-confirmation", message: `operation ${id} waits${what}` }] };
}

function identityOf(known: KnownDocument | undefined, baseline: Baseline | undefined): Partial<NodeAnswer> {
  // A document that is not carried out yet says what the node shall be, not what it is.
  if (known === undefined || baseline === undefined) return {};
  const { role, cluster } = known.document;
  return {
    ...(role === undefined ? {} : { role }),
    cluster: cluster.name,
    ...(cluster.endpoint === undefined ? {} : { endpoint: cluster.endpoint }),
  };
}

function bootedOf({ boot, version }: StatusInput): NodeAnswer["os"]["booted"] {
  return {
    ...(boot?.slot === undefined ? {} : { slot: boot.slot }),
    version,
    ...(boot?.rootHash === undefined ? {} : { digest: boot.rootHash }),
  };
}

function certificateOf(end: CertificateEnd, nowMs: number): NonNullable<NodeAnswer["certificates"]>[number] {
  const { name, path, kind, notAfterMs } = end;
  const notAfter = new Date(notAfterMs).toISOString();
  return {
    name,
    ...(path === undefined ? {} : { path }),
    notAfter,
    daysLeft: daysLeft(end, nowMs),
    renewal: RENEWAL[kind],
  };
}

function shortOf(operation: Operation): NonNullable<NodeAnswer["operation"]> {
  const step = operation.steps.find(({ state }) => state === "running");
  return {
    id: operation.id,
    kind: operation.kind,
    ...(step === undefined ? {} : { step: step.title }),
    ...(operation.message === undefined ? {} : { message: operation.message }),
  };
}

/** A report that hangs or fails is left out, never guessed. */
async function part<T>(work: Promise<T>, otherwise: T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), PART_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work.catch(() => otherwise), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function readKubernetes(
  { host, state, collectors }: StatusInput,
  document: Document | undefined,
  readVersion: () => Promise<string | undefined>,
): Promise<NodeAnswer["kubernetes"]> {
  const service = document?.role === "worker" ? "k0sworker.service" : "k0scontroller.service";
  const status = await host.systemd.status(service);
  if (!status.ok || status.value.loadState === "not-found") return undefined;
  const isActive = status.value.activeState === "active";
  // systemd answers at once; k0s itself may not, and then what it would have said is left out.
  const [asked, readiness] = await Promise.all([
    part(readVersion(), undefined),
    isActive ? part(collectors.readiness(document), undefined) : undefined,
  ]);
  const version = asked ?? state.baseline.get()?.k0sVersion;
  if (version === undefined) return undefined;
  return {
    version,
    service,
    active: isActive,
    ...(readiness?.isReady === undefined ? {} : { nodeReady: readiness.isReady }),
    ...(readiness?.why === undefined ? {} : { nodeMessage: readiness.why }),
    ...(version.endsWith("-sim") ? { standIn: true } : {}),
  };
}
