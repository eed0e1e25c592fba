/** A node in service as the gate sees it: a real database, a machine in memory, k0s on it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApplyDependencies } from "../../apply/service/model.ts";
import { parseDocument } from "../../config/load.ts";
import { renderNode } from "../../provision/render.ts";
import { isOver, type Operation } from "../../state/model.ts";
import { memoryState, openState, type State } from "../../state/open.ts";
import { fakeHost, type FakeHost } from "./fake-host.ts";
import { type FakeK0s, fakeK0s } from "./fake-k0s.ts";
import { recordBaseline } from "./in-service.ts";
import { sha256Of } from "../../kit/sha256.ts";

const folders: string[] = [];

/** For `afterEach`. */
export function removeServices(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
}

/** The file and, below /etc, its copy on the state partition. */
const kept = (path: string): readonly string[] =>
  path.startsWith("/etc/") ? [path, `/var/lib/corium${path}`] : [path];

export interface GateService {
  readonly fake: FakeHost;
  readonly dependencies: ApplyDependencies;
  /** As another process opens it: what the dead one had begun is abandoned. `bootId`: of another boot. */
  reopen(bootId?: string): ApplyDependencies;
  state(): State;
}

/** `isInMemory`: the database is none that could be lost, for tests that open it a thousand times. */
export function gateService(
  before: string,
  k0s: FakeK0s = fakeK0s({ slowness: 0 }),
  { isInMemory = false }: { readonly isInMemory?: boolean } = {},
): GateService {
  const folder = mkdtempSync(join(tmpdir(), "corium-apply-"));
  folders.push(folder);
  const paths = { database: join(folder, "corium.db"), marker: join(folder, "marker") };
  const memory = isInMemory ? memoryState() : undefined;
  const open = (): State => {
    if (memory !== undefined) return memory;
    const state = openState(paths);
    if (!state.ok) throw new Error(state.error.message);
    return state.value;
  };
  let state = open();
  const fake = fakeHost({ programs: { k0s: k0s.program } });
  const { document } = parseDocument(before, { nowMs: fake.clock.nowMs() });
  if (document === undefined) throw new Error("not valid");
  const rendered: Record<string, string> = {};
  for (const file of renderNode({ document, hostname: "n1", machineId: "m", addresses: {} }).files) {
    rendered[file.path] = sha256Of(file.content);
    for (const path of kept(file.path)) fake.put(path, file.content, { mode: file.mode });
  }
  for (const path of kept("/etc/corium/config.yaml")) fake.put(path, before, { mode: 0o600 });
  fake.unitTable.set("k0scontroller.service", {
    activeState: "active",
    subState: "running",
    loadState: "loaded",
    isEnabled: true,
    restarts: 0,
    result: "success",
    mainPid: 9,
    journal: [],
  });
  fake.sync();
  recordBaseline(state, before, { rendered, atMs: fake.clock.nowMs() });
  state.meta.set("in-service-at-ms", "1");
  writeFileSync(paths.marker, "");
  const depend = (): ApplyDependencies => ({
    host: fake,
    paths: { stateDir: "/var/lib/corium", config: "/etc/corium/config.yaml" },
    state,
    version: "1",
    parse: (text, nowMs) => parseDocument(text, { nowMs }),
  });
  return {
    fake,
    dependencies: depend(),
    state: () => state,
    reopen: (bootId) => {
      if (!isInMemory) state.close();
      const opened = open();
      // This very process has begun them; on a node their owner is gone.
      const alive = new Set<string>();
      const { operations } = opened;
      const abandoned = (): readonly Operation[] =>
        operations.list().filter(({ id, phase }) => !isOver(phase) && !alive.has(id));
      const adopt = (id: string, atMs: number): void => {
        alive.add(id);
        operations.adopt(id, atMs);
      };
      state = { ...opened, operations: { ...operations, abandoned, adopt }, bootId: bootId ?? opened.bootId };
      return depend();
    },
  };
}
