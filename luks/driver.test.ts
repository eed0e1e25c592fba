/** A volume by hand: recovery keys, unlocking, and binding to a TPM that measures something else now. */
import { describe, expect, test } from "bun:test";
import type { AppError } from "../kit/app-error.ts";
import { formatError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import { memoryState } from "../state/open.ts";
import { nodeVolumes, remindOfRecovery } from "../supervisor/volumes.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import type { FakeLuks, FakeSlot } from "../test/support/fake-luks.ts";
import { fakeLuks } from "../test/support/fake-luks.ts";
import { mintRecoveryKey, readTpm, unlockVolume, volumeReader } from "./driver.ts";
import type { KnownVolume } from "./model.ts";

const uuid = "11111111-2222-4333-8444-555555555555";
const vault: KnownVolume = { name: "vault", uuid, unlock: "tpm2" };
const unit = "systemd-cryptsetup@corium\\x2dluks\\x2dvault.service";

function machine(slots: FakeSlot[] = [{ kind: "tpm2", opens: "a:7" }]): { luks: FakeLuks; host: FakeHost } {
  const luks = fakeLuks({ "/dev/vdb": { serial: "A", header: { uuid, label: "corium-vault", slots } } });
  const host = fakeHost({
    files: { [`/dev/disk/by-uuid/${uuid}`]: "", "/sys/class/tpm/tpm0/tpm_version_major": "2\n" },
    programs: luks.programs,
    units: { [unit]: { onStart: (fake) => luks.openByCrypttab("corium-luks-vault", fake) } },
  });
  host.put("/etc/crypttab", `corium-luks-vault UUID=${uuid} none luks,tpm2-device=auto\n`);
  return { luks, host };
}

const value = <T>(result: Result<T, AppError>): T => {
  if (!result.ok) throw new Error(formatError(result.error));
  return result.value;
};
const code = (result: Result<unknown, AppError>): string => (result.ok ? "ok" : result.error.code);
const slotsOf = (luks: FakeLuks): readonly FakeSlot[] => luks.disks.get("/dev/vdb")?.header?.slots ?? [];
const secret = (text: string): Secret => new Secret("key", text);

describe("a recovery key", () => {
  test("is made with the TPM, opens the volume, and stands in no call", async () => {
    const { luks, host } = machine();
    const key = value(await mintRecoveryKey(host, vault, false));
    expect(key.reveal()).toBe("recovery-1");
    expect(slotsOf(luks).map(({ kind }) => kind)).toEqual(["tpm2", "recovery"]);
    expect(host.calls.filter((call) => call.includes("recovery-1"))).toEqual([]);
    expect(host.paths("/var/lib/corium")).toEqual([]);
  });

  test("a second one only as a replacement, and then the first opens nothing any more", async () => {
    const { luks, host } = machine();
    value(await mintRecoveryKey(host, vault, false));
    expect(code(await mintRecoveryKey(host, vault, false))).toBe("has-recovery-key");
    expect(value(await mintRecoveryKey(host, vault, true)).reveal()).toBe("recovery-2");
    expect(slotsOf(luks).map(({ opens }) => opens)).toEqual(["a:7", "recovery-2"]);
  });

  test("can't be made once the TPM says no: too late is said as that", async () => {
    const { luks, host } = machine();
    luks.tpm = "a:new";
    const minted = await mintRecoveryKey(host, vault, false);
    expect(code(minted)).toBe("locked");
    expect(slotsOf(luks)).toHaveLength(1);
  });
});

describe("unlock", () => {
  const recovery: FakeSlot = { kind: "recovery", opens: "recovery-0" };
  const locked = (): ReturnType<typeof machine> => {
    const made = machine([{ kind: "tpm2", opens: "a:7" }, recovery]);
    made.luks.tpm = "a:new";
    return made;
  };

  test("B173: new firmware changed what the TPM measures: the recovery key opens the volume and binds it anew", async () => {
    const { luks, host } = locked();
    expect(value(await unlockVolume(host, vault, secret("recovery-0")))).toEqual({ isBoundAnew: true });
    expect(luks.open.get("corium-luks-vault")).toBe("/dev/vdb");
    expect(slotsOf(luks)).toEqual([recovery, { kind: "tpm2", opens: "a:new" }]);
    expect(host.paths("/run/corium")).toEqual([]);
    expect(host.calls.filter((call) => call.includes("recovery-0"))).toEqual([]);
    // The unit that closes it at power-off has taken it over.
    expect(host.unitTable.get(unit)?.activeState).toBe("active");
  });

  test("a new board whose TPM measures the same: its slot is made all the same", async () => {
    const { luks, host } = locked();
    luks.tpm = "b:7";
    expect(value(await unlockVolume(host, vault, secret("recovery-0")))).toEqual({ isBoundAnew: true });
    expect(slotsOf(luks)).toEqual([recovery, { kind: "tpm2", opens: "b:7" }]);
  });

  test("B174: binding anew fails: the volume is open all the same, it is said once and not tried for ever", async () => {
    const { luks, host } = locked();
    luks.isEnrolmentBroken = true;
    const opened = value(await unlockVolume(host, vault, secret("recovery-0")));
    expect(opened.isBoundAnew).toBe(false);
    expect(formatError(opened.problem ?? { code: "", message: "" })).toContain("No such file or directory");
    expect(luks.open.has("corium-luks-vault")).toBe(true);
    expect(slotsOf(luks)).toEqual([{ kind: "tpm2", opens: "a:7" }, recovery]);
    expect(host.calls.filter((call) => call.startsWith("exec systemd-cryptenroll"))).toHaveLength(1);
    expect(host.paths("/run/corium")).toEqual([]);
  });

  test("a wrong key is wrong although the TPM would open the volume", async () => {
    const { luks, host } = machine();
    expect(code(await unlockVolume(host, vault, secret("anything")))).toBe("wrong-key");
    expect(luks.open.size).toBe(0);
  });

  test("open already, its disk not here, no TPM to bind it to", async () => {
    const { luks, host } = locked();
    luks.tpm = undefined;
    host.drop("/sys/class/tpm/tpm0/tpm_version_major");
    const opened = value(await unlockVolume(host, vault, secret("recovery-0")));
    expect(opened.problem?.code).toBe("no-tpm2");
    expect(code(await unlockVolume(host, vault, secret("recovery-0")))).toBe("already-open");
    host.drop(`/dev/disk/by-uuid/${uuid}`);
    expect(code(await unlockVolume(host, { ...vault, name: "other" }, secret("x")))).toBe("missing");
  });
});

describe("what is shown", () => {
  test("open, locked, missing; and whether there is a recovery key, asked of the disk seldom", async () => {
    const { host } = machine();
    const read = volumeReader(host);
    expect(await read([vault])).toEqual([{ name: "vault", unlock: "tpm2", state: "locked", hasRecoveryKey: false }]);
    value(await mintRecoveryKey(host, vault, false));
    const dumps = (): number => host.calls.filter((call) => call.includes("luksDump")).length;
    const before = dumps();
    expect((await read([vault]))[0]?.hasRecoveryKey).toBe(false);
    expect(dumps()).toBe(before);
    read.forget();
    expect((await read([vault]))[0]?.hasRecoveryKey).toBe(true);
    host.drop(`/dev/disk/by-uuid/${uuid}`);
    expect(await read([vault])).toEqual([{ name: "vault", unlock: "tpm2", state: "missing" }]);
    expect(await read([])).toEqual([]);
  });

  test("once per boot an event reminds of what has no recovery key", async () => {
    const { host } = machine();
    const state = memoryState();
    const text = "role: single\nluks: [{name: vault, device: {serial: A}, mountPoint: /srv/vault}]\n";
    state.documents.add({ text, atMs: 1, requester: { kind: "document" }, origin: "apply" });
    state.owned.put({ kind: "luks", name: "vault", uuid, disks: [] });
    const volumes = nodeVolumes(host, state);
    await remindOfRecovery(host, state, volumes);
    await remindOfRecovery(host, state, volumes);
    const reminders = () => state.events.last().filter(({ kind }) => kind === "no-recovery-key");
    expect(reminders().map(({ severity }) => severity)).toEqual(["warning"]);
    expect(reminders()[0]?.message).toContain("cctl luks recovery NODE vault");
    state.meta.set("reminded-of-recovery", "an earlier boot");
    value(await volumes.recovery(vault, false));
    await remindOfRecovery(host, state, volumes);
    expect(reminders()).toHaveLength(1);
  });
});

test("the TPM is asked in sysfs, Secure Boot in its variable's fifth byte, the acknowledgement as a whole word", async () => {
  const variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
  const read = async (cmdline: string, secureBoot?: number) => {
    const efi = secureBoot === undefined ? {} : { [variable]: new Uint8Array([6, 0, 0, 0, secureBoot]) };
    return readTpm(fakeHost({ files: { "/proc/cmdline": cmdline, ...efi } }));
  };
  const bare = { isEfi: false, isSecureBoot: false, isAcknowledged: false };
  expect(await read("quiet\n")).toEqual(bare);
  expect(await read("quiet corium.luks-pcr7=acknowledged\n")).toEqual({ ...bare, isAcknowledged: true });
  expect(await read("xcorium.luks-pcr7=acknowledged corium.luks-pcr7=acknowledgedx\n")).toEqual(bare);
  expect(await read("", 1)).toEqual({ isEfi: true, isSecureBoot: true, isAcknowledged: false });
  expect(await read("", 0)).toEqual({ isEfi: true, isSecureBoot: false, isAcknowledged: false });
});
