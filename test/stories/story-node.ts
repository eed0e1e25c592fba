/**
 * A node for stories: the real listener, API, gate and database; below them a machine in memory with a k0s that
 * restarts, refuses and loops. cctl reaches it over TLS as it reaches any node.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "../../api/app.ts";
import { caChallenge } from "../../api/ca-challenge.ts";
import { createDoor } from "../../api/caller.ts";
import { countConnections } from "../../api/connections.ts";
import { openEnrolment } from "../../api/enrolment.ts";
import { listenOnTls } from "../../api/listener.ts";
import type { ApiServices } from "../../api/services.ts";
import { serveApply } from "../../apply/service/driver.ts";
import type { ApplyDependencies } from "../../apply/service/model.ts";
import { confirmByConnection, newCaOf, resumeApply } from "../../apply/waiting/driver.ts";
import { parseDocument } from "../../config/load.ts";
import { realRandom } from "../../host/random.ts";
import { fail } from "../../kit/app-error.ts";
import { nodePaths } from "../../kit/paths.ts";
import { ok } from "../../kit/result.ts";
import { mintServer } from "../../pki/driver.ts";
import { fingerprintOfPem } from "../../pki/fingerprint.ts";
import { renderNode } from "../../provision/render.ts";
import { openErasable } from "../../state/erase.ts";
import { type State, openState } from "../../state/open.ts";
import type { BootstrapControl } from "../../supervisor/bootstrap-control.ts";
import { carryOutReset } from "../../supervisor/reset.ts";
import { createResetService } from "../../supervisor/reset-service.ts";
import { type Collectors, createStatus } from "../../supervisor/status.ts";
import { nodeVolumes } from "../../supervisor/volumes.ts";
import { type FakeHost, type FakeUnit, fakeHost } from "../support/fake-host.ts";
import { type FakeK0s, fakeK0s } from "../support/fake-k0s.ts";
import { sha256Of } from "../../kit/sha256.ts";

export interface StoryNode {
  readonly address: string;
  readonly fingerprint: string;
  readonly code: () => string;
  readonly machine: FakeHost;
  readonly k0s: FakeK0s;
  readonly state: State;
  readonly services: ApiServices;
  /** What a bootstrap leaves behind: files, units, baseline, marker. */
  readonly bootstrap: (text: string) => void;
  /** The reset that was begun is over. */
  readonly settled: () => Promise<void>;
  readonly close: () => Promise<void>;
}

const version = "0.1.0";
const machineId = "0123456789abcdef0123456789abcdef";

export async function startStoryNode(): Promise<StoryNode> {
  const folder = mkdtempSync(join(tmpdir(), "corium-story-"));
  const real = { database: join(folder, "corium.db"), marker: join(folder, "bootstrapped") };
  const opened = openState(real);
  if (!opened.ok) throw new Error(opened.error.message);
  const state = opened.value;
  const k0s = fakeK0s({ slowness: 0 });
  const machine = fakeHost({
    nowMs: Date.now(),
    files: {
      "/etc/machine-id": `${machineId}\n`,
      "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n',
      "/proc/sys/kernel/osrelease": "6.12.48\n",
      "/proc/sys/kernel/hostname": "corium\n",
    },
    programs: {
      k0s: k0s.program,
      systemctl: () => "",
      sync: () => "",
      journalctl: () =>
        `${JSON.stringify({ __REALTIME_TIMESTAMP: "1769860800000000", _SYSTEMD_UNIT: "k0scontroller.service", MESSAGE: "k0s is up" })}\n`,
    },
  });
  const paths = nodePaths();
  const server = await mintServer({ hostname: "corium", nowMs: Date.now(), random: realRandom });
  const fingerprint = fingerprintOfPem(server.certificate) ?? "";
  const enrolment = await openEnrolment(machine, paths.enrolment, fingerprint);
  if (!enrolment.ok) throw new Error(enrolment.error.message);
  const parse = (text: string): ReturnType<ApiServices["config"]["parse"]> =>
    parseDocument(text, { nowMs: machine.clock.nowMs() });
  const code = (): string => {
    const stored = JSON.parse(machine.text(paths.enrolment) ?? "{}") as { readonly code?: string };
    return stored.code ?? "";
  };

  const stage = async () => (state.baseline.get() === undefined ? "waiting" : "done");
  const bootstrap: BootstrapControl = {
    state: stage,
    settled: stage,
    read: async () => undefined,
    poke: async () => ok(undefined),
  };
  const collectors: Collectors = {
    arrays: async () => [],
    mounts: async () => [],
    volumes: async () => [],
    overlay: async () => [],
    ha: async () => undefined,
    addresses: async () => [],
    readiness: async () => ({ isReady: true }),
    hardware: async () => ({}),
  };
  const boot = { mode: "disk", slot: "A" } as const;
  const connections = countConnections();
  const gate: ApplyDependencies = {
    lastConnection: () => connections.last,
    host: machine,
    paths,
    state,
    version,
    parse: (text, nowMs) => parseDocument(text, { nowMs }),
    // Time on this machine does not pass by itself.
    holdFor: () => new Promise(() => undefined),
  };
  const status = createStatus({ host: machine, paths, state, boot, version, bootstrap, collectors });
  const services: ApiServices = {
    host: machine,
    paths,
    version,
    state,
    enrolment: enrolment.value,
    config: { parse, findOwn: async () => ({ kind: "none" }), redact: () => "(redacted)" },
    bootstrap,
    status: { ...status, disks: async () => ok([]) },
    apply: {
      apply: (request) => serveApply(gate, request),
      greet: (connection) => confirmByConnection(gate, connection),
      resume: (operation, told) => resumeApply(gate, operation, told),
    },
    caChallenge: caChallenge(machine),
    volumes: nodeVolumes(machine, state),
    reset: createResetService({
      host: machine,
      paths,
      state,
      version,
      readInventory: async () => ok({ disks: [], arrays: [], unknown: [] }),
    }),
    disks: {
      plan: async () => fail("no-baseline", "this node has no arrays"),
      begin: () => ({ kind: "busy", operation: "none", message: "operation none (apply) is running; wait for it" }),
    },
  };
  const listener = await listenOnTls({
    port: 0,
    address: "127.0.0.1",
    certificate: server.certificate,
    privateKey: server.privateKey,
    door: createDoor(state, machine.clock, () => newCaOf(state)),
    connections,
    handle: createApi(services).handle,
  });
  const readInventory: Parameters<typeof carryOutReset>[0]["readInventory"] = async () =>
    ok({ disks: [], arrays: [], unknown: [] });
  // Who follows it has a real connection, and needs a moment of real time for its last words.
  const clock = { ...machine.clock, sleep: (ms: number) => Bun.sleep(Math.min(ms, 1000)) };
  let resetting: Promise<number> | undefined;
  machine.unitTable.set("corium-apid.service", { ...activeUnit, onStop: () => void listener.close() });
  machine.unitTable.set("corium-reset.service", {
    ...activeUnit,
    activeState: "inactive",
    onStart: () => {
      const openReal = () => openErasable(real);
      const common = { paths, version, readInventory, openErasable: openReal, say: () => undefined };
      resetting = carryOutReset({ ...common, host: { ...machine, clock } });
      return ok(undefined);
    },
  });
  return {
    address: `127.0.0.1:${listener.port}`,
    fingerprint,
    code,
    machine,
    k0s,
    state,
    services,
    bootstrap: (text) => becomeNode(text, { state, machine, marker: real.marker }),
    settled: async () => void (await resetting),
    async close() {
      await resetting;
      await listener.close();
      state.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const activeUnit: FakeUnit = {
  activeState: "active",
  subState: "running",
  loadState: "loaded",
  isEnabled: true,
  restarts: 0,
  result: "success",
  mainPid: 9,
  journal: ["2026-01-31T12:00:00+0000 k0s is up"],
};

function becomeNode(
  text: string,
  { state, machine, marker }: { readonly state: State; readonly machine: FakeHost; readonly marker: string },
): void {
  const { document, findings } = parseDocument(text, { nowMs: machine.clock.nowMs() });
  if (document === undefined) throw new Error(JSON.stringify(findings));
  const hostname = document.node.name ?? "corium-01234567";
  machine.put("/proc/sys/kernel/hostname", `${hostname}\n`);
  const put = (path: string, content: string, mode: number): void => {
    machine.put(path, content, { mode });
    if (path.startsWith("/etc/")) machine.put(`/var/lib/corium${path}`, content, { mode });
  };
  const { files } = renderNode({ document, hostname, machineId, addresses: {} });
  for (const file of files) put(file.path, file.content, file.mode);
  put("/etc/corium/config.yaml", text, 0o600);
  machine.unitTable.set("k0scontroller.service", { ...activeUnit });
  machine.sync();
  const atMs = machine.clock.nowMs();
  const stored = state.documents.add({ text, atMs, requester: { kind: "document" }, origin: "enroll" });
  state.baseline.set({
    document: stored,
    hostname,
    machineId,
    addresses: {},
    k0sVersion: "v1.36.3+k0s.2",
    inputHash: "0123456789abcdef",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: Object.fromEntries(files.map(({ path, content }) => [path, sha256Of(content)])),
    atMs,
  });
  state.meta.set("in-service-at-ms", String(atMs));
  writeFileSync(marker, "");
}
