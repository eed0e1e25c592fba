/** A document corrected before the first boot was over: what the one before it had written. */
import { describe, expect, test } from "bun:test";
import type { Document } from "../../config/document.ts";
import { parseDocument } from "../../config/load.ts";
import { ok } from "../../kit/result.ts";
import type { StepContext } from "../../kit/step.ts";
import { CRYPTTAB } from "../../luks/render.ts";
import { type FakeHost, fakeHost } from "../../test/support/fake-host.ts";
import type { EarlierStep } from "../model.ts";
import { renderNode } from "../render.ts";
import { earlierExecutor, findEarlier } from "./driver.ts";
import { earlierThan, planEarlier } from "./plan.ts";

const KEY = "kHh0kIqXyPxSSJlCFdAM7oN4kLFy0A1Cz3sAgD5gB0w=";
const facts = { hostname: "n1", machineId: "0123456789abcdef0123456789abcdef", addresses: {} };
const documentOf = (text: string): Document => {
  const { document, findings } = parseDocument(text, { nowMs: 0 });
  if (document === undefined) throw new Error(JSON.stringify(findings));
  return document;
};
const overlay = (name: string): string => `wireguard:
  - name: ${name}
    address: 10.9.0.1/24
    privateKey: "${KEY}"
    peers: [{ publicKey: "${KEY}", allowedIPs: [10.9.0.2/32] }]
`;
const stack = (name: string): string => `manifests:
  - name: ${name}
    files: [{ name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}" }]
`;
const base = "role: single\nnode: { name: n1 }\n";

/** With every file that this document gives a node. */
function having(text: string): FakeHost {
  const host = fakeHost({ programs: { networkctl: () => "" } });
  for (const { path, content, mode } of renderNode({ ...facts, document: documentOf(text) }).files)
    host.put(path, content, { mode });
  return host;
}

interface Planned {
  readonly step: EarlierStep | undefined;
  readonly warnings: readonly string[];
  readonly context: StepContext;
}

async function corrected(host: FakeHost, before: string, after: string, hasK0sRecord = false): Promise<Planned> {
  const wanted = earlierThan([documentOf(before)], { ...facts, document: documentOf(after) });
  const { steps, findings } = planEarlier(await findEarlier(host, wanted), hasK0sRecord);
  const context = { host, secrets: new Map(), report: () => undefined } as unknown as StepContext;
  return { step: steps[0], warnings: findings.map(({ message }) => message), context };
}

async function carryOut({ step, context }: Planned): Promise<void> {
  if (step === undefined) throw new Error("nothing to do");
  expect(await earlierExecutor.check(step, context)).toEqual(ok("todo"));
  expect(await earlierExecutor.run(step, context)).toEqual(ok(undefined));
  expect(await earlierExecutor.check(step, context)).toEqual(ok("done"));
}

describe("a document that was corrected", () => {
  test("names its overlay otherwise: k0s waited for ever for the one before", async () => {
    const host = having(base + overlay("wg0"));
    const dropIn = "/etc/systemd/system/k0scontroller.service.d/50-corium-overlay-wg0.conf";
    expect(host.text(dropIn)).toContain("Requires=corium-overlay@wg0.service");
    const planned = await corrected(host, base + overlay("wg0"), base + overlay("wg1"));
    await carryOut(planned);
    const gone = [
      dropIn,
      "/etc/systemd/network/50-corium-wg0.netdev",
      "/etc/systemd/network/50-corium-wg0.network",
      "/etc/systemd/network/corium-keys/wg0.key",
    ];
    expect(gone.map((path) => host.text(path))).toEqual(gone.map(() => undefined));
    expect(host.text("/etc/hostname")).toBe("n1\n");
    expect(planned.step?.title).not.toContain(KEY);
    expect(host.calls.filter((call) => call.includes("networkctl"))).toEqual([
      expect.stringContaining("networkctl delete wg0"),
      expect.stringContaining("networkctl reload"),
    ]);
  });

  test("says the same: nothing is removed", async () => {
    const text = base + overlay("wg0") + stack("site");
    expect((await corrected(having(text), text, text)).step).toBeUndefined();
  });

  test("has its overlay's key made by the node: the key was made anew at every retry", async () => {
    const own = (base + overlay("wg0")).replace(`privateKey: "${KEY}"`, "generateKey: true");
    const host = having(own);
    host.put("/etc/systemd/network/corium-keys/wg0.key", "made here\n");
    expect((await corrected(host, base + overlay("wg0"), own)).step).toBeUndefined();
  });

  test("has one stack less: k0s would have applied it all the same", async () => {
    const host = having(base + stack("old"));
    await carryOut(await corrected(host, base + stack("old"), base + stack("new")));
    expect(host.text("/var/lib/k0s/manifests/old/a.yaml")).toBeUndefined();
  });

  test("has one stack less when k0s was started with it: it stays, for k0s would delete its objects, and that is said", async () => {
    const host = having(base + stack("old"));
    const { step, warnings } = await corrected(host, base + stack("old"), base + stack("new"), true);
    expect([step, warnings]).toEqual([
      undefined,
      ["k0s was started with the manifests of 'old', which the document does not have any more: they stay"],
    ]);
  });

  test("wants no upgrades any more: the timer is stopped and gone", async () => {
    const before = `${base}upgrades: { automatic: download, schedule: "Sun 03:00" }\n`;
    const host = having(before);
    const planned = await corrected(host, before, base);
    expect(planned.step?.timers).toEqual(["corium-upgrade.timer"]);
    await carryOut(planned);
    expect(host.text("/etc/systemd/system/corium-upgrade.timer")).toBeUndefined();
  });

  test("has an encrypted volume less: its line goes, and nobody else's", async () => {
    const volume = (name: string): string => `  - { name: ${name}, device: /dev/disk/by-id/${name}, unlock: tpm2 }\n`;
    const before = `${base}luks:\n${volume("vault")}${volume("safe")}`;
    const host = having(before);
    host.put(CRYPTTAB, `other UUID=1 none luks\n${host.text(CRYPTTAB) ?? ""}`);
    await carryOut(await corrected(host, before, `${base}luks:\n${volume("safe")}`));
    expect(host.text(CRYPTTAB)).toMatch(/^other UUID=1 none luks\n# corium: .*\n\S*safe UUID=\S+ .*\n# corium: end\n$/);
  });

  test("never has what was written for a mount removed before that is unmounted", async () => {
    const disk = (point: string): string =>
      `${base}disks:\n  - { name: data, device: /dev/disk/by-id/a, filesystem: ext4, mountPoint: ${point} }\n`;
    const host = having(disk("/srv/a"));
    expect((await corrected(host, disk("/srv/a"), disk("/srv/b"))).step).toBeUndefined();
  });
});
