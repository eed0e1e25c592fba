import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeSnapshot } from "../apply/undo/driver.ts";
import { parseDocument } from "../config/load.ts";
import { nodePaths } from "../kit/paths.ts";
import { openState, type State } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { recordBaseline } from "../test/support/in-service.ts";
import { type CutApply, holdPath, recoverCutApplies } from "./cut-apply.ts";

const DOCUMENT = `role: single
disks: [{ name: data, device: { serial: A1 }, mountPoint: /var/lib/k0s }]
`;
const MANIFEST = "/var/lib/k0s/manifests/site/one.yaml";
const requester = { kind: "local" } as const;
const running = { activeState: "active", subState: "running", loadState: "loaded" } as const;

test("a power cut in an apply left the new manifests: their disk was mounted after everything had been put back", async () => {
  const folder = mkdtempSync(join(tmpdir(), "corium-cut-"));
  try {
    const paths = { database: join(folder, "corium.db"), marker: join(folder, "marker") };
    const open = (): State => {
      const state = openState(paths);
      if (!state.ok) throw new Error(state.error.message);
      return state.value;
    };
    const before = open();
    const host = fakeHost({
      units: { "k0scontroller.service": { ...running, activeState: "inactive" }, "var-lib-k0s.mount": running },
    });
    host.put(MANIFEST, "old");
    recordBaseline(before, DOCUMENT);
    const begun = before.operations.begin({ kind: "apply", requester, version: "1", atMs: 1 });
    if (!begun.ok) throw new Error("busy");
    const plan = {
      files: [{ path: MANIFEST, mode: 0o600, content: "new" }],
      timers: { wanted: [], gone: [] },
    } as unknown as Parameters<typeof takeSnapshot>[1]["plan"];
    const taken = await takeSnapshot(host, {
      stateDir: "/var/lib/corium",
      operation: begun.value.id,
      plan,
      restarts: ["k0scontroller"],
      documentSha256: "another",
    });
    expect(taken.ok).toBe(true);
    host.put(MANIFEST, "new");
    before.close();

    // The next boot: the daemon is there long before the disk.
    const opened = open();
    // This very process still owns it; on a node the owner is gone.
    const abandoned = () => opened.operations.list().filter(({ phase }) => phase === "running");
    const state = { ...opened, operations: { ...opened.operations, abandoned } };
    const mount = host.unitTable.get("var-lib-k0s.mount");
    const k0s = host.unitTable.get("k0scontroller.service");
    if (mount === undefined || k0s === undefined) throw new Error("no such units");
    Object.assign(mount, { activeState: "inactive" });
    const said: string[] = [];
    const cut: CutApply = {
      host,
      paths: nodePaths(),
      state,
      version: "1",
      parse: (text, nowMs) => parseDocument(text, { nowMs }),
      say: (line) => said.push(line),
    };
    const stopping = new AbortController();
    const { waiting } = await recoverCutApplies(cut, stopping.signal);
    expect(waiting).toBeDefined();
    expect(host.text(MANIFEST)).toBe("new");
    expect(host.text(holdPath("/run/corium"))).toBe("");
    expect(state.operations.list()[0]).toMatchObject({
      phase: "running",
      message: expect.stringContaining("/var/lib/k0s"),
    });
    expect(said).toHaveLength(1);

    Object.assign(mount, { activeState: "active" });
    await waiting;
    expect(host.text(MANIFEST)).toBe("old");
    expect(host.text(holdPath("/run/corium"))).toBeUndefined();
    expect(k0s.activeState).toBe("active");
    expect(state.operations.list()[0]).toMatchObject({ phase: "rolled-back" });
    state.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
