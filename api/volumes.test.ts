import { describe, expect, test } from "bun:test";

import { memoryState } from "../state/open.ts";
import type { FakeApi } from "../test/support/fake-api.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import type { FakeLuks } from "../test/support/fake-luks.ts";
import { fakeLuks } from "../test/support/fake-luks.ts";

const uuid = "11111111-2222-4333-8444-555555555555";
const unit = "systemd-cryptsetup@corium\\x2dluks\\x2dvault.service";
const text = "role: single\nluks: [{name: vault, device: {serial: A}, mountPoint: /var/lib/k0s}]\n";

async function node(): Promise<{ api: FakeApi; luks: FakeLuks }> {
  const header = { uuid, label: "corium-vault", slots: [{ kind: "tpm2" as const, opens: "a:7" }] };
  const luks = fakeLuks({ "/dev/vdb": { serial: "A", header } });
  const state = memoryState();
  state.documents.add({ text, atMs: 1, requester: { kind: "document" }, origin: "apply" });
  state.owned.put({ kind: "luks", name: "vault", uuid, disks: [] });
  const api = await fakeApi({
    state,
    files: { [`/dev/disk/by-uuid/${uuid}`]: "", "/sys/class/tpm/tpm0/tpm_version_major": "2\n" },
    programs: luks.programs,
    units: {
      [unit]: { onStart: (fake) => luks.openByCrypttab("corium-luks-vault", fake) },
      "var-lib-k0s.mount": { activeState: "failed" },
      "k0scontroller.service": { activeState: "inactive", isEnabled: true },
    },
  });
  api.fake.put("/etc/crypttab", `corium-luks-vault UUID=${uuid} none luks,tpm2-device=auto\n`);
  return { api, luks };
}

describe("POST /v1/luks/NAME/recovery", () => {
  test("gives the key once, to an admin, and keeps it neither in the audit nor in an event", async () => {
    const { api } = await node();
    const answer = await api.call("POST", "/v1/luks/vault/recovery", { json: {} });
    expect([answer.status, answer.json]).toEqual([200, { volume: "vault", recoveryKey: "recovery-1" }]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const told = JSON.stringify([api.state.audit.last(), api.state.events.last()]);
    expect(told).toContain("/v1/luks/vault/recovery");
    expect(told).not.toContain("recovery-1");
  });

  test("again only as a replacement", async () => {
    const { api } = await node();
    await api.call("POST", "/v1/luks/vault/recovery", { json: {} });
    const again = await api.call("POST", "/v1/luks/vault/recovery", { json: {} });
    expect([again.status, again.json["reason"]]).toEqual([409, "has-recovery-key"]);
    const replaced = await api.call("POST", "/v1/luks/vault/recovery", { json: { replace: true } });
    expect(replaced.json["recoveryKey"]).toBe("recovery-2");
  });

  test("not for an operator, not of a volume that is not there", async () => {
    const { api } = await node();

    expect((await api.call("POST", "/v1/luks/vault/recovery", { json: {}, as: operator("operator") })).status).toBe(
      403,
    );
    const unknown = await api.call("POST", "/v1/luks/other/recovery", { json: {} });
    expect([unknown.status, unknown.json["reason"]]).toEqual([404, "unknown-volume"]);
    expect(unknown.json["error"]).toBe("this node has no encrypted volume 'other'; it has vault");
  });
});

describe("POST /v1/luks/NAME/unlock", () => {
  const unlock = (api: FakeApi, key: string) => api.call("POST", "/v1/luks/vault/unlock", { json: { key } });

  test("opens it, and starts the mount and k0s, which systemd had given up on", async () => {
    const { api, luks } = await node();
    const { json } = await api.call("POST", "/v1/luks/vault/recovery", { json: {} });
    luks.tpm = "a:new";
    const answer = await unlock(api, ` ${String(json["recoveryKey"])}\n`);
    expect([answer.status, answer.json]).toEqual([200, { volume: "vault", boundAnew: true, problems: [] }]);
    expect(api.fake.unitTable.get("var-lib-k0s.mount")?.activeState).toBe("active");
    expect(api.fake.unitTable.get("k0scontroller.service")?.activeState).toBe("active");
    expect(api.state.events.last().map(({ kind }) => kind)).toContain("volume-unlocked");
  });

  test("a wrong key is refused and starts nothing", async () => {
    const { api, luks } = await node();
    luks.tpm = "a:new";
    const answer = await unlock(api, "guess");
    expect([answer.status, answer.json["reason"]]).toEqual([409, "wrong-key"]);
    expect(answer.text).not.toContain("guess");
    expect(api.fake.unitTable.get("k0scontroller.service")?.activeState).toBe("inactive");
  });
});
