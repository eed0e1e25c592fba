/** `corium serve`: the API daemon. Composition root: the only place that knows all the parts of it. */
import { parseDocument } from "../config/load.ts";
import { listedK0sVersions } from "../iso/k0s-lock.ts";
import { SYSTEM_ARRAY } from "../iso/mirror/report.ts";
import { redactPlain } from "../config/redact.ts";
import { nodeFingerprintKey } from "../apply/fingerprint-key.ts";
import { fingerprint } from "../apply/fingerprint.ts";
import { serveApply } from "../apply/service/driver.ts";
import { confirmByConnection, newCaOf, resumeApply } from "../apply/waiting/driver.ts";
import { adoptBaseline } from "../apply/adopt/driver.ts";
import type { ApplyDependencies } from "../apply/service/model.ts";
import { rerender } from "../apply/rerender/driver.ts";
import { readInventory } from "../disks/driver.ts";
import { judgeDisk } from "../disks/select.ts";
import { hardwareReader } from "../host/hardware.ts";
import { realNotify } from "../host/notify.ts";
import { realHost } from "../host/real.ts";
import { watchPaths } from "../host/watch.ts";
import type { AppError } from "../kit/app-error.ts";
import { formatError } from "../kit/app-error.ts";
import type { Command, CommandIo } from "../kit/command.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import { ok } from "../kit/result.ts";
import { version } from "../kit/version.ts";
import { loadX509 } from "../pki/x509.ts";
import { seedReader } from "../provision/seed/driver.ts";
import type { State } from "../state/open.ts";
import { memoryState, openState, openWithoutBaseline } from "../state/open.ts";
import { closeAbandoned } from "../supervisor/abandoned.ts";
import { recoverCutApplies } from "../supervisor/cut-apply.ts";
import { watchHandover } from "../supervisor/cni-handover.ts";
import { watchAddresses } from "../supervisor/address-watch.ts";
import { arrayDuty } from "../supervisor/array-duty.ts";
import { bootstrapControl } from "../supervisor/bootstrap-control.ts";
import type { MirrorWatch } from "../supervisor/mirror-watch.ts";
import { watchMirror } from "../supervisor/mirror-watch.ts";
import { watchCertificates } from "../supervisor/certificate-watch.ts";
import { readCertificateEnds } from "../supervisor/certificates.ts";
import { type ConfigWatcher, configWatcher, onOperationEnd } from "../supervisor/config-watch.ts";
import { nodeCollectors } from "../supervisor/collectors.ts";
import { createInstaller } from "../supervisor/installer.ts";
import { documentReader } from "../supervisor/known-document.ts";
import { kubeletOf, membershipWatcher } from "../supervisor/membership-watch.ts";
import { overlayWatcher } from "../supervisor/overlay-watch.ts";
import { identityReader } from "../supervisor/disk-identities.ts";
import { readBootFacts, readMachine } from "../supervisor/machine.ts";
import { reportOtherSystems } from "../supervisor/other-systems.ts";
import { findOwnDocument, readApiMode } from "../supervisor/own-document.ts";
import { isReKeyed } from "../supervisor/re-key.ts";
import { isResetting } from "../supervisor/reset-files.ts";
import { createResetService } from "../supervisor/reset-service.ts";
import { openServerIdentity } from "../supervisor/server-identity.ts";
import { createStatus } from "../supervisor/status.ts";
import { steadyState } from "../supervisor/steady-state.ts";
import { removeTemporaries } from "../supervisor/temporary-files.ts";
import { vipWatcher } from "../supervisor/vip-watch.ts";
import { nodeVolumes, remindOfRecovery } from "../supervisor/volumes.ts";
import { createApi } from "./app.ts";
import { createDoor } from "./caller.ts";
import { caChallenge } from "./ca-challenge.ts";
import { countConnections } from "./connections.ts";
import type { Enrolment } from "./enrolment.ts";
import { openDoors } from "./doors.ts";
import { openEnrolment } from "./enrolment.ts";
import { forbiddenIn, parseOptions, type ServeOptions } from "./serve-options.ts";
import { watchOwnDocument } from "./own-document-watch.ts";
import type { ApiServices } from "./services.ts";
import { stringify } from "yaml";

const EXIT_USAGE = 2;
/** The unit has RestartPreventExitStatus=78: a document that turns the API off is obeyed, not tried again. */
export const EXIT_DISABLED = 78;
/** How long the first look for the node's own document may hold back the start: it may be behind a URL. */
const FIRST_LOOK_MS = 3_000;
const ANSWERED_MS = 1_000;
/** Beside what files and operations tell: units, arrays, mounts and links have no file that changes with them. */
const LOOK_EVERY_MS = 300_000;
export const WATCHDOG_MS = 5_000;

export const serveCommand: Command = async (argv, io) => {
  const options = parseOptions(argv);
  if (options === undefined) {
    io.err("usage: corium serve [--state-dir DIR] [--run-dir DIR] [--address IP] [--port N]\n");
    return EXIT_USAGE;
  }
  const forbidden = forbiddenIn(io.env);
  if (forbidden.length > 0) {
    io.err(
      `corium serve: refuses to start with ${forbidden.join(", ")} in its environment\n  hint: unset it in the unit\n`,
    );
    return 1;
  }
  return serve(options, io);
};

async function serve(options: ServeOptions, io: CommandIo): Promise<number> {
  const { paths } = options;
  const say = (text: string): void => io.err(`${text}\n`);
  const notify = realNotify(io.env["NOTIFY_SOCKET"]);
  const boot = await readBootFacts(realHost(), paths);
  const isKeptEtc = options.isNode && boot?.mode !== "live";
  const host = realHost(isKeptEtc ? { keptEtc: paths.keptEtc } : {});

  const opened = openState(paths);
  if (!opened.ok) say(`corium serve: ${formatError(opened.error)}`);
  let differences: ConfigWatcher | undefined;
  const incomplete = opened.ok ? undefined : openWithoutBaseline(paths);
  const steady = steadyState(opened.ok ? opened.value : (incomplete ?? memoryState()), {
    clock: host.clock,
    say: (line) => say(`corium serve: ${line}`),
  });
  const state = onOperationEnd(steady, () => differences?.wake());
  const stateProblem = opened.ok ? undefined : opened.error;
  const parse = (text: string, nowMs: number) => parseDocument(text, { nowMs, k0sVersions: listedK0sVersions });
  const connections = countConnections();
  const gate = { host, paths, state, version, parse, lastConnection: () => connections.last };
  await removeTemporaries({ host, paths, isNode: options.isNode });
  const ending = new AbortController();
  const adopted = new AbortController();
  let recovering: Promise<void> | undefined;
  if (stateProblem === undefined) {
    // The unit is ordered before k0s: what an apply left half written is put back before anything reads it.
    const cut = { ...gate, say: (line: string) => say(`corium serve: ${line}`) };
    recovering = (await recoverCutApplies(cut, AbortSignal.any([io.signal, ending.signal]))).waiting;
    // Elsewhere than on a node its files are somebody else's.
    if (options.isNode && boot?.mode === "disk" && recovering === undefined) await rerender(gate);
  }

  const isAdoptable = incomplete !== undefined && !(await isResetting(host, paths));
  // None is gone on with, and none may be in the way.
  if (isAdoptable) closeAbandoned(state, host.clock.nowMs(), { isResetting: false });

  const booted = boot === undefined ? {} : { boot };
  // Elsewhere than on a node (`--state-dir`) sticks are somebody else's.
  const seeds = options.isNode
    ? { readSeeds: seedReader(host, { ...booted, folder: `${paths.runDir}/seed/apid` }) }
    : {};
  const look = { host, paths, state, ...booted, ...seeds };
  const findOwn = () => findOwnDocument(look);
  const mode = await withDeadline(
    findOwn().then((own) => readApiMode(host, own, { isClaimed: isDecided(state), signal: io.signal })),
    FIRST_LOOK_MS,
  );
  if (mode?.isEnabled === false) {
    say("corium serve: the document turns the API off");
    state.close();
    return EXIT_DISABLED;
  }

  const { hostname } = await readMachine(host);
  const identity = await openServerIdentity(host, paths, hostname === "" ? "corium" : hostname);
  if (!identity.ok) {
    say(`corium serve: ${formatError(identity.error)}`);
    return 1;
  }
  const enrolment = await openEnrolmentIfClaimable(host, paths, state, stateProblem, identity.value.fingerprint);
  if (enrolment !== undefined && "code" in enrolment) {
    say(`corium serve: ${formatError(enrolment)}`);
    return 1;
  }

  const bootstrap = bootstrapControl(host, paths);
  const inventoryOf = () => readInventory(host, boot ?? { mode: "disk" });
  const volumes = nodeVolumes(host, state);
  const identities = identityReader(host);
  const sayOf = (line: string): void => say(`corium serve: ${line}`);
  const mirrored = boot?.isMirrored === true ? (boot.installation ?? "") : undefined;
  const duty = arrayDuty(
    {
      host,
      state,
      version,
      parse,
      inventory: inventoryOf,
      identities,
      ...(mirrored !== undefined && { mirrored }),
      say: sayOf,
    },
    paths.runDir,
  );
  const readKnown = documentReader(state);
  const overlays = overlayWatcher({
    host,
    state,
    overlays: () => readKnown()?.document.wireguard ?? [],
    memoryPath: `${paths.runDir}/overlays.json`,
    say: sayOf,
  });
  const addresses = {
    host,
    state,
    recorded: () => state.baseline.get()?.addresses ?? {},
    memoryPath: `${paths.runDir}/addresses.json`,
    say: sayOf,
  };
  const vip = vipWatcher({
    host,
    state,
    // Until then nobody here could hold it, and others may well do.
    document: () => (state.meta.get("in-service-at-ms") === undefined ? undefined : readKnown()?.document),
    memoryPath: `${paths.runDir}/vip.json`,
    say: sayOf,
  });
  const membership = membershipWatcher({
    host,
    state,
    node: () => kubeletOf(state, readKnown()?.document.role),
    memoryPath: `${paths.runDir}/membership.json`,
    say: sayOf,
  });
  const certificates = { host, state, read: () => readCertificateEnds(host, paths, state), say: sayOf };
  const status = createStatus({
    host,
    paths,
    state,
    version,
    bootstrap,
    lost: membership.lost,
    collectors: nodeCollectors(host, state, {
      hardware: hardwareReader(host.clock),
      volumes,
      identities,
      peers: overlays.memory,
      vip: vip.memory,
      ...(boot === undefined ? {} : { boot }),
    }),
    ...(boot === undefined ? {} : { boot }),
    ...(stateProblem === undefined ? {} : { stateProblem }),
  });
  const services: ApiServices = {
    host,
    paths,
    version,
    state,
    bootstrap,
    ...(stateProblem === undefined ? {} : { stateProblem }),
    ...(enrolment === undefined ? {} : { enrolment }),
    config: {
      parse: (text, nowMs = host.clock.nowMs()) => parse(text, nowMs),
      findOwn,
      redact: (text) => redactForReaders(text, nodeFingerprintKey(state.meta, host.random)),
    },
    status: {
      ...status,
      async disks() {
        const inventory = await inventoryOf();
        if (!inventory.ok) return inventory;
        return ok(inventory.value.disks.map((disk) => ({ ...disk, ...judgeDisk(disk, inventory.value) })));
      },
    },
    apply: {
      apply: (request) => serveApply(gate, request),
      greet: (connection) => confirmByConnection(gate, connection),
      resume: (operation, told) => resumeApply(gate, operation, told),
    },
    ...(boot?.mode === "live" && options.isNode
      ? { install: createInstaller({ host, state, version, boot, readInventory: inventoryOf }) }
      : {}),
    caChallenge: caChallenge(host),
    volumes,
    disks: duty.disks,
    ...(isAdoptable ? { adopt: adoptThenRestart(gate, () => adopted.abort()) } : {}),
    ...(boot?.mode === "live"
      ? {}
      : { reset: createResetService({ host, paths, state, version, readInventory: inventoryOf }) }),
  };
  const { handle } = createApi(services);
  const created = await host.files.mkdir(paths.runDir, { mode: 0o755 });
  if (!created.ok) {
    say(`corium serve: ${formatError(created.error)}`);
    return 1;
  }
  const doors = await openDoors(options, {
    certificate: identity.value.certificate,
    privateKey: identity.value.privateKey,
    door: createDoor(state, host.clock, () => newCaOf(state)),
    handle,
    connections,
  });
  if (!doors.ok) {
    say(`corium serve: ${formatError(doors.error)}`);
    return 1;
  }
  const { remote, local } = doors.value;
  notify("READY=1");
  // The first caller need not wait for it.
  setTimeout(loadX509, 0);
  if (stateProblem === undefined) {
    remindOfRecovery(host, state, volumes).catch((thrown: unknown) => say(`corium serve: ${String(thrown)}`));
  }
  // Read by those who gave port 0.
  say(`corium serve: listening on port ${remote.port}, fingerprint ${identity.value.fingerprint}`);

  const watchdog = setInterval(() => {
    // Also fed while the database is lost: a restart would not bring it back, and would take the API down.
    notify("WATCHDOG=1");
  }, WATCHDOG_MS);
  if (mirrored !== undefined) keepMirror(mirrored, host, state, io);
  // Elsewhere than on a node arrays and overlays are somebody else's.
  const isWatched = options.isNode && stateProblem === undefined;
  const over = AbortSignal.any([io.signal, ending.signal]);
  const watching = isWatched
    ? Promise.all([
        duty.watch(over),
        overlays.watch(over),
        vip.watch(over),
        watchAddresses(addresses, over),
        watchCertificates(certificates, over),
        watchHandover({ ...gate, say: sayOf }, over),
        membership.watch(over),
      ])
    : undefined;
  differences = configWatcher({
    host,
    state,
    paths,
    watchPaths,
    ...(isKeptEtc ? { keptConfig: `${paths.keptEtc}/corium/config.yaml` } : {}),
    read: () => status.config(),
    document: () => readKnown()?.document,
    say: sayOf,
    pollMs: LOOK_EVERY_MS,
  });
  const comparing = stateProblem === undefined ? differences.run(over) : undefined;
  if (isWatched && boot !== undefined) {
    const others = { host, state, boot, inventory: inventoryOf, say: sayOf, signal: ending.signal };
    reportOtherSystems(others).catch((thrown: unknown) => sayOf(String(thrown)));
  }
  const signal = AbortSignal.any([io.signal, adopted.signal]);
  const isDisabled = await watchOwnDocument({ services, state, mode, findOwn, say, signal });
  clearInterval(watchdog);
  notify("STOPPING=1");
  ending.abort();
  await Promise.all([remote.close(), local.close(), watching, comparing, recovering]);
  state.close();
  return isDisabled ? EXIT_DISABLED : 0;
}

/** The state is whole then, and all that was not started without it is: by a new start, once the answer is out. */
function adoptThenRestart(gate: ApplyDependencies, restart: () => void): NonNullable<ApiServices["adopt"]> {
  return async (request) => {
    const outcome = await adoptBaseline(gate, request);
    if (outcome.kind === "answer" && outcome.answer.status === "adopted") setTimeout(restart, ANSWERED_MS);
    return outcome;
  };
}

/** Who commands it is no question for its document any more. */
const isDecided = (state: State): boolean => state.claim.get() !== undefined || isReKeyed(state);

/** For as long as the daemon runs. */
function keepMirror(installation: string, host: Host, state: State, { signal, err }: CommandIo): void {
  const tell: MirrorWatch["tell"] = (severity, message) => {
    if (!signal.aborted) state.events.add({ atMs: host.clock.nowMs(), kind: "mirror", severity, message });
  };
  const isReplaced = (): boolean => state.replacements.open()?.array === SYSTEM_ARRAY;
  watchMirror({ host, installation, tell, isReplaced }, signal).catch((thrown: unknown) => {
    err(`corium serve: nobody looks after the mirror of the system any more: ${String(thrown)}\n`);
  });
}

async function openEnrolmentIfClaimable(
  host: Host,
  paths: Paths,
  state: State,
  stateProblem: AppError | undefined,
  fingerprintOfServer: string,
): Promise<Enrolment | AppError | undefined> {
  const isClaimable =
    stateProblem === undefined &&
    !(await isResetting(host, paths)) &&
    state.claim.get() === undefined &&
    (state.baseline.get() === undefined || isReKeyed(state));
  if (!isClaimable) {
    await host.files.remove(paths.enrolment);
    return undefined;
  }
  const enrolment = await openEnrolment(host, paths.enrolment, fingerprintOfServer);
  return enrolment.ok ? enrolment.value : enrolment.error;
}

/** Secrets, add-on values, patches and Secret manifests as fingerprints, keyed so that they say nothing else. */
function redactForReaders(text: string, key: string): string {
  const { raw } = parseDocument(text, { nowMs: 0 });
  const mark = (_path: string, value: unknown): string =>
    fingerprint(key, typeof value === "string" ? value : JSON.stringify(value));
  return stringify(redactPlain(raw, { isForReaders: true, mark }));
}

async function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
