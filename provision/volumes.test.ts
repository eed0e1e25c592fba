/** Encrypted volumes from plan to mount on a machine in memory: resumed after a power cut anywhere, adopted, refused. */
import { describe, expect, test } from "bun:test";
import type { LuksSpec } from "../config/document.ts";
import { formatError } from "../kit/app-error.ts";
import type { OwnedStorage } from "../kit/disk.ts";
import { ok } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import type { TpmFacts } from "../luks/model.ts";
import { memoryState } from "../state/open.ts";
import { MachineDied } from "../test/support/fake-call.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import type { FakeDisk, FakeLuks } from "../test/support/fake-luks.ts";
import { fakeLuks } from "../test/support/fake-luks.ts";
import { storageDocument } from "../test/machines/machines.ts";
import { execute } from "./execute.ts";
import { planStorage } from "./storage.ts";
import { readVolumeFacts, storageExecutors } from "./storage/driver.ts";

const vault = (more: Partial<LuksSpec> = {}): LuksSpec => ({
  name: "vault",
  device: { serial: "A" },
  unlock: "tpm2",
  filesystem: "ext4",
  mountPoint: "/srv/vault",
  wipe: false,
  ...more,
});
const byPassphrase = vault({ unlock: "passphrase", passphrase: "correct horse" });
const KEY = "luks[vault].passphrase";
const trusted: TpmFacts = { versionMajor: 2, isEfi: true, isSecureBoot: true, isAcknowledged: false };

interface World {
  readonly luks: FakeLuks;
  readonly host: FakeHost;
  readonly state: ReturnType<typeof memoryState>;
  readonly owned: OwnedStorage[];
}

function world(disk: Partial<FakeDisk> = {}): World {
  const luks = fakeLuks({ "/dev/vdb": { serial: "A", ...disk } });
  const open = (mapping: string) => (fake: FakeHost) => luks.openByCrypttab(mapping, fake);
  const host = fakeHost({
    files: {
      "/sys/class/tpm/tpm0/tpm_version_major": "2\n",
      "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": new Uint8Array([6, 0, 0, 0, 1]),
      "/dev/vdb": "",
      ...(disk.header === undefined ? {} : { [`/dev/disk/by-uuid/${disk.header.uuid}`]: "" }),
    },
    programs: luks.programs,
    units: {
      "systemd-cryptsetup@corium\\x2dluks\\x2dvault.service": { onStart: open("corium-luks-vault") },
      "srv-vault.mount": {
        onStart: () => {
          const inside = luks.disks.get("/dev/vdb")?.header?.inside;
          if (!luks.open.has("corium-luks-vault") || inside?.label === undefined)
            return { ok: false, error: { code: "unit-failed", message: "no such device" } };
          luks.mounted = { point: "/srv/vault", uuid: inside.uuid };
          return ok(undefined);
        },
      },
    },
  });
  const { systemd } = host;
  const enable: FakeHost["systemd"]["enable"] = async (name) => {
    host.put(`/etc/systemd/system/local-fs.target.wants/${name}`, "");
    return systemd.enable(name);
  };
  return { luks, host: { ...host, systemd: { ...systemd, enable } }, state: memoryState(), owned: [] };
}

async function provision(of: World, spec: LuksSpec = vault(), ownLossSinceMs?: number): Promise<string[]> {
  const { host, luks, state } = of;
  const document = storageDocument({ luks: [spec] });
  const records = { inventory: luks.inventory(), owned: of.owned, intents: state.journal.intents() };
  const secret = spec.passphrase === undefined ? undefined : new Secret(KEY, spec.passphrase);
  const volumes = await readVolumeFacts(host, document, records, async () => secret);
  if (!volumes.ok) throw new Error(formatError(volumes.error));
  const plan = planStorage({
    document,
    ...records,
    volumes: volumes.value,
    uuid: () => host.random.uuid(),
    ...(ownLossSinceMs === undefined ? {} : { ownLossSinceMs }),
  });
  const errors = plan.findings.filter(({ severity }) => severity === "error");
  if (errors.length > 0) return errors.map(({ code, path, message }) => `${code} ${path}: ${message}`);
  const done = await execute(plan.steps, storageExecutors, {
    host,
    secrets: new Map(secret === undefined ? [] : [[KEY, secret]]),
    journal: state.journal,
    inventory: async () => ok(luks.inventory()),
    isSuperseded: (intent) => ownLossSinceMs !== undefined && intent.openedAtMs < ownLossSinceMs,
  });
  if (!done.ok) return [formatError(done.error)];
  of.owned.splice(0, of.owned.length, ...plan.owned);
  return [];
}

function reboot({ luks, host }: World): void {
  luks.powerOff();
  host.boot();
  host.put("/dev/vdb", "");
  const uuid = luks.disks.get("/dev/vdb")?.header?.uuid;
  if (uuid !== undefined) host.put(`/dev/disk/by-uuid/${uuid}`, "", { kind: "block" });
  for (const unit of host.unitTable.values()) unit.activeState = "inactive";
}

const headerOf = ({ luks }: World) => luks.disks.get("/dev/vdb")?.header;
const kinds = (of: World): string[] => headerOf(of)?.slots.map(({ kind }) => kind) ?? [];
const executed = ({ host }: World, program: string): string[] =>
  host.calls.filter((call) => call.startsWith(`exec ${program} `)).map((call) => call.slice(5));

describe("a volume that the TPM opens", () => {
  test("is made, bound, opened and mounted; nothing but the TPM opens it, and its first key is gone", async () => {
    const of = world();
    expect(await provision(of)).toEqual([]);
    expect(kinds(of)).toEqual(["tpm2"]);
    expect(of.luks.mounted?.point).toBe("/srv/vault");
    expect(of.host.paths("/var/lib/corium/luks")).toEqual([]);
    const uuid = headerOf(of)?.uuid ?? "";
    expect(of.host.text("/etc/crypttab")).toContain(
      `corium-luks-vault UUID=${uuid} none luks,tpm2-device=auto,headless=1,nofail,token-timeout=10s\n`,
    );
    expect(of.host.text("/var/lib/corium/etc/crypttab")).toBe(of.host.text("/etc/crypttab"));
    expect(of.owned).toMatchObject([{ kind: "luks", name: "vault", uuid, disks: [{ serial: "A" }] }]);
    const unit = of.host.text("/etc/systemd/system/srv-vault.mount") ?? "";
    expect(unit).toContain("Requires=systemd-cryptsetup@corium\\x2dluks\\x2dvault.service\n");
    expect(of.host.text("/etc/systemd/system/corium-pods.service.d/50-corium-srv-vault.conf")).toContain(
      "After=srv-vault.mount\n",
    );
  });

  test("power lost at any call: the next boots end in the same volume, made once, with the UUIDs that were chosen", async () => {
    const total = await callsOf(vault());
    for (let at = 1; at <= total; at += 1) {
      for (const when of ["before", "during", "after"] as const) {
        const of = world();
        of.host.dieAt(at, when);
        const first = await provision(of).catch((thrown: unknown) => {
          if (thrown instanceof MachineDied) return ["died"];
          throw thrown;
        });
        reboot(of);
        const chosen = of.state.journal.intents().map(({ step }) => (step as { uuid?: string }).uuid);
        expect({ at, when, again: await provision(of) }).toEqual({ at, when, again: [] });
        expect({ at, when, first, slots: kinds(of) }).toMatchObject({ at, when, slots: ["tpm2"] });
        expect(of.host.paths("/var/lib/corium/luks")).toEqual([]);
        expect(of.luks.mounted?.point).toBe("/srv/vault");
        for (const uuid of chosen) expect([headerOf(of)?.uuid, headerOf(of)?.inside?.uuid]).toContain(uuid);
        expect(of.host.text("/etc/crypttab")?.match(/corium-luks-vault/g)).toHaveLength(1);
      }
    }
  }, 120_000);

  test("a second run changes nothing", async () => {
    const of = world();
    await provision(of);
    const before = structuredClone(headerOf(of));
    const count = of.host.calls.length;
    expect(await provision(of)).toEqual([]);
    expect(headerOf(of)).toEqual(before);
    const since = of.host.calls.slice(count).filter((call) => /luksFormat|cryptenroll|files\.write|mkfs/.test(call));
    expect(since).toEqual([]);
  });

  test("a header of an earlier installation is adopted when the TPM opens it, and is data when it does not", async () => {
    const earlier = world();
    await provision(earlier);
    const header = structuredClone(headerOf(earlier));
    if (header === undefined) throw new Error("nothing was made");
    const again = world({ header });
    expect(await provision(again)).toEqual([]);
    expect(headerOf(again)).toEqual(header);
    expect(executed(again, "cryptsetup").some((call) => call.includes("luksFormat"))).toBe(false);
    expect(executed(again, "cryptsetup").filter((call) => call.includes("corium-probe"))).toHaveLength(2);
    const elsewhere = world({ header: structuredClone(header) });
    elsewhere.luks.tpm = "b:7";
    expect(await provision(elsewhere)).toEqual([
      expect.stringMatching(/^holds-data luks\[0\]\.device: disk \/dev\/vdb .*crypto_LUKS "corium-vault"/),
    ]);
    expect(headerOf(elsewhere)).toEqual(header);
  });

  test("one that opens but holds other data is data; wipe: true gives it up", async () => {
    const header = {
      uuid: "11111111-2222-4333-8444-555555555555",
      label: "corium-vault",
      slots: [{ kind: "tpm2" as const, opens: "a:7" }],
      inside: { type: "xfs", uuid: "x", label: "photos" },
    };
    expect(await provision(world({ header: structuredClone(header) }))).toEqual([
      expect.stringMatching(/^holds-data luks\[0\]\.device/),
    ]);
    const consented = world({ header: structuredClone(header) });
    expect(await provision(consented, vault({ wipe: true }))).toEqual([]);
    expect(headerOf(consented)?.uuid).not.toBe(header.uuid);
  });

  test("its header gone from the disk is incomplete, whatever wipe says", async () => {
    const of = world();
    await provision(of);
    delete of.luks.disks.get("/dev/vdb")?.header;
    of.luks.powerOff();
    expect(await provision(of, vault({ wipe: true }))).toEqual([
      expect.stringMatching(/^own-incomplete luks\[0\]\.device: volume vault \(.*its header is not on disk \/dev\/vdb/),
    ]);
  });

  test("with --wipe-own it is made anew, and power lost on the way does not make it twice", async () => {
    const of = world();
    await provision(of);
    const before = headerOf(of)?.uuid;
    reboot(of);
    const since = of.host.clock.nowMs() + 1000;
    of.host.setNow(since);
    expect(await provision(of, vault({ wipe: true }), since)).toEqual([]);
    const made = headerOf(of)?.uuid;
    expect(made).not.toBe(before);
    reboot(of);
    expect(await provision(of, vault({ wipe: true }), since)).toEqual([]);
    expect(headerOf(of)?.uuid).toBe(made);
    expect(of.host.text("/etc/crypttab")?.match(/corium-luks-vault/g)).toHaveLength(1);
  });

  test("under another name it is this node's own data: wipe: true is not enough", async () => {
    const of = world();
    await provision(of);
    of.luks.powerOff();
    const refused = await provision(of, vault({ name: "other", wipe: true, mountPoint: "/srv/other" }));
    expect(refused).toEqual([expect.stringMatching(/^own-data luks\[0\]\.device/)]);
    expect(kinds(of)).toEqual(["tpm2"]);
  });
});

describe("a volume with a passphrase", () => {
  test("its key is a file of mode 0600 without a newline, and never an argument", async () => {
    const of = world();
    expect(await provision(of, vault({ unlock: "passphrase", passphrase: " correct horse\n" }))).toEqual([]);
    expect(of.host.text("/var/lib/corium/luks/vault.key")).toBe("correct horse");
    expect(of.host.node("/var/lib/corium/luks/vault.key")?.mode).toBe(0o600);
    expect(headerOf(of)?.slots).toEqual([{ kind: "password", opens: "correct horse" }]);
    expect(of.host.calls.filter((call) => call.includes("horse"))).toEqual([]);
    expect(of.host.text("/etc/crypttab")).toContain(
      " /var/lib/corium/luks/vault.key luks,headless=1,nofail,token-timeout=10s\n",
    );
    expect(executed(of, "cryptsetup").find((call) => call.includes("luksFormat"))).toContain(
      "--pbkdf argon2id --pbkdf-memory 65536 --pbkdf-parallel 1 --pbkdf-force-iterations 4",
    );
  });

  test("power lost at any call: the next boots end in the same volume", async () => {
    const total = await callsOf(byPassphrase);
    for (let at = 1; at <= total; at += 1) {
      for (const when of ["before", "during", "after"] as const) {
        const of = world();
        of.host.dieAt(at, when);
        await provision(of, byPassphrase).catch((thrown: unknown) => {
          if (!(thrown instanceof MachineDied)) throw thrown;
        });
        reboot(of);
        expect({ at, when, again: await provision(of, byPassphrase) }).toEqual({ at, when, again: [] });
        expect(headerOf(of)?.slots).toEqual([{ kind: "password", opens: "correct horse" }]);
        expect(of.luks.mounted?.point).toBe("/srv/vault");
      }
    }
  }, 120_000);

  test("an earlier volume opened by the declared passphrase is adopted; another passphrase makes it data", async () => {
    const earlier = world();
    await provision(earlier, byPassphrase);
    const header = structuredClone(headerOf(earlier));
    if (header === undefined) throw new Error("nothing was made");
    const again = world({ header: structuredClone(header) });
    expect(await provision(again, byPassphrase)).toEqual([]);
    expect(headerOf(again)).toEqual(header);
    const wrong = world({ header: structuredClone(header) });
    expect(await provision(wrong, vault({ unlock: "passphrase", passphrase: "battery staple" }))).toEqual([
      expect.stringMatching(/^holds-data/),
    ]);
  });

  test("a passphrase that does not open this node's own volume does not replace the one that does", async () => {
    const of = world();
    await provision(of, byPassphrase);
    reboot(of);
    const [error] = await provision(of, vault({ unlock: "passphrase", passphrase: "battery staple" }));
    expect(error).toContain("luks[vault].passphrase does not open volume vault");
    expect(of.host.text("/var/lib/corium/luks/vault.key")).toBe("correct horse");
  });
});

describe("refused at planning, before anything is changed", () => {
  const refusals = (tpm: TpmFacts): string[] =>
    planStorage({
      document: storageDocument({ luks: [vault()] }),
      inventory: fakeLuks({ "/dev/vdb": { serial: "A" } }).inventory(),
      owned: [],
      intents: [],
      volumes: { tpm, probed: new Map() },
      uuid: () => "0",
    }).findings.map(({ severity, code, path }) => `${severity} ${code} ${path}`);

  test("no TPM, a TPM 1.2, a BIOS, Secure Boot off; the last two may be acknowledged", () => {
    expect(refusals(trusted)).toEqual([]);
    expect(refusals({ isEfi: true, isSecureBoot: true, isAcknowledged: true })).toEqual([
      "error no-tpm2 luks[0].unlock",
    ]);
    expect(refusals({ ...trusted, versionMajor: 1 })).toEqual(["error no-tpm2 luks[0].unlock"]);
    for (const weak of [
      { ...trusted, isSecureBoot: false },
      { ...trusted, isEfi: false },
    ]) {
      expect(refusals(weak)).toEqual(["error pcr7-unmeasured luks[0].unlock"]);
      expect(refusals({ ...weak, isAcknowledged: true })).toEqual(["warning pcr7-unmeasured luks[0].unlock"]);
    }
  });

  test("a foreign volume is data", async () => {
    const of = world({ header: { uuid: "f", label: "photos", slots: [{ kind: "password", opens: "x" }] } });
    expect(await provision(of)).toEqual([
      expect.stringMatching(/^holds-data luks\[0\]\.device: .*crypto_LUKS "photos" on the whole disk/),
    ]);
    expect(executed(of, "cryptsetup").filter((call) => !call.includes("open --readonly"))).toEqual([]);
  });
});

async function callsOf(spec: LuksSpec): Promise<number> {
  const of = world();
  await provision(of, spec);
  return of.host.calls.length;
}
