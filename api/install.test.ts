import { describe, expect, test } from "bun:test";
import type { Inventory } from "../kit/disk.ts";
import { parseDocument } from "../config/load.ts";
import { ok } from "../kit/result.ts";
import { PARTITIONS } from "../iso/layout.ts";
import { partUuidsOf } from "../iso/uuids.ts";
import { memoryState } from "../state/open.ts";
import { createInstaller } from "../supervisor/installer.ts";
import { consentOf } from "../supervisor/own-consent.ts";
import { machine } from "../test/machines/machines.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { localCaller } from "./caller.ts";
import type { InstallOffersAnswer } from "./contract.ts";

const GIB = 1024 ** 3;
const image = "/run/corium/medium/corium";

/** A: blank, B: holds ext4, C: an installed Corium, D: too small. */
function disks(): Inventory {
  const pair = machine("blank-pair");
  const first = pair.disks.find(({ identity }) => identity.serial === "A");
  if (first === undefined) throw new Error("the machine has no disk");
  const like = (serial: string, more: Partial<typeof first>) => ({
    ...first,
    path: `/dev/vd${serial.toLowerCase()}`,
    links: [`/dev/disk/by-id/virtio-${serial}`],
    sizeBytes: 16 * GIB,
    ...more,
    identity: { serial, sizeBytes: more.sizeBytes ?? 16 * GIB },
  });
  const uuids = partUuidsOf("ab".repeat(16));
  return {
    ...pair,
    disks: [
      like("A", {}),
      like("B", { signatures: [{ type: "ext4", device: "/dev/vdb", where: "the whole disk at 0x438" }] }),
      like("C", {
        partitions: PARTITIONS.map(({ role, number, name }) => ({
          path: `/dev/vdc${number}`,
          number,
          sizeBytes: GIB,
          partUuid: uuids[role],
          label: name,
        })),
      }),
      like("D", { sizeBytes: GIB }),
    ],
  };
}

async function live() {
  const state = memoryState();
  const host = fakeHost({
    files: { [`${image}/root.img`]: "x".repeat(8192), [`${image}/vmlinuz`]: "k", [`${image}/initrd`]: "i" },
  });
  const boot = { mode: "live", rootHash: "a".repeat(64), image: { directory: image, hashOffsetBytes: 4096 } } as const;
  const install = createInstaller({ host, state, version: "1.2.3", boot, readInventory: async () => ok(disks()) });
  return fakeApi({ state, install });
}
const post = (json: unknown) => ({ json, as: localCaller("console") });

describe("installing without a document", () => {
  test("a system that runs from its disk does not install", async () => {
    const { call } = await fakeApi();
    for (const answer of [
      await call("GET", "/v1/install"),
      await call("POST", "/v1/install", { json: { disk: { serial: "A" } } }),
    ]) {
      expect([answer.status, answer.json["reason"]]).toEqual([409, "not-live"]);
    }
  });

  test("each disk is offered with what it would cost, or why not", async () => {
    const { call } = await live();
    const { disks: offers, canMirror } = (await call("GET", "/v1/install")).json as unknown as InstallOffersAnswer;
    expect(offers.map(({ serial, isAccepted, consent }) => [serial, isAccepted, consent])).toEqual([
      ["A", true, "none"],
      ["B", true, "wipe"],
      ["C", true, "wipe-own"],
      ["D", false, "none"],
    ]);
    expect(offers.map(({ ref }) => ref)).toEqual([{ serial: "A" }, { serial: "B" }, { serial: "C" }, { serial: "D" }]);
    expect(offers[3]?.reason).toContain("1073741824");
    expect(typeof canMirror).toBe("boolean");
  });

  test("the chosen disk becomes the document, bootstrap is set going, and the audit names the console", async () => {
    const { call, fake, pokes, state } = await live();
    const answer = await call("POST", "/v1/install", post({ disk: { serial: "A" } }));
    expect([answer.status, answer.json["installing"]]).toEqual([200, true]);
    expect(fake.text("/etc/corium/config.yaml")).toBe("install:\n  disk:\n    serial: A\n");
    expect(pokes.count).toBe(1);
    expect(state.documents.latest()).toMatchObject({ origin: "install", requester: { kind: "console" } });
    expect(state.audit.last(1)[0]).toMatchObject({ route: "POST /v1/install", requester: { kind: "console" } });
  });

  test("a document that is there keeps everything but its install block", async () => {
    const api = await live();
    api.own = { kind: "found", text: "role: single # ours\ninstall: {disk: {serial: GONE}}\n", origin: "seed" };
    expect((await api.call("POST", "/v1/install", post({ disk: { serial: "A" } }))).status).toBe(200);
    const text = api.fake.text("/etc/corium/config.yaml") ?? "";
    expect(text).toContain("role: single # ours\n");
    expect(parseDocument(text, { nowMs: 0 }).document?.install).toEqual({ disk: { serial: "A" }, wipe: false });
  });

  test("one that can't be read or is not valid is not replaced by another intent", async () => {
    const api = await live();
    for (const own of [
      { kind: "found", text: "role: king\n", origin: "seed" },
      { kind: "failed", error: { code: "http", message: "the server is away" } },
    ] as const) {
      api.own = own;
      expect((await api.call("POST", "/v1/install", post({ disk: { serial: "A" } }))).status).toBe(409);
      expect(api.fake.text("/etc/corium/config.yaml")).toBeUndefined();
    }
  });

  test("data is not lost without wipe, an installed Corium not without wipeOwn as well", async () => {
    const api = await live();
    for (const body of [
      { disk: { serial: "B" } },
      { disk: { serial: "B" }, wipeOwn: true },
      { disk: { serial: "C" }, wipe: true },
      { disk: { serial: "C" }, wipeOwn: true },
      { disk: { serial: "D" }, wipe: true, wipeOwn: true },
      { disk: { serial: "NONE" } },
    ]) {
      const answer = await api.call("POST", "/v1/install", post(body));
      expect([body, answer.status, answer.json["reason"]]).toEqual([body, 409, "refused"]);
    }
    expect([api.fake.text("/etc/corium/config.yaml"), api.pokes.count, consentOf(api.state)]).toEqual([
      undefined,
      0,
      undefined,
    ]);
    expect((await api.call("POST", "/v1/install", post({ disk: { serial: "B" }, wipe: true }))).status).toBe(200);
    expect(consentOf(api.state)).toBeUndefined();
  });

  test("the consent to lose an installed Corium is recorded for that disk, with who gave it", async () => {
    const api = await live();
    const body = { disk: { serial: "C" }, wipe: true, wipeOwn: true };
    expect((await api.call("POST", "/v1/install", post(body))).status).toBe(200);
    expect(consentOf(api.state)).toMatchObject({ by: "somebody at the console", disks: [{ serial: "C" }] });
    expect(api.state.events.last(1)[0]?.kind).toBe("wipe-own-given");
  });

  test("a kernel name is no name, a busy node is not disturbed, operators may as well", async () => {
    const api = await live();
    expect((await api.call("POST", "/v1/install", post({ disk: "/dev/vda" }))).status).toBe(400);
    api.bootstrap = "running";
    const busy = await api.call("POST", "/v1/install", post({ disk: { serial: "A" } }));
    expect([busy.status, busy.json["reason"]]).toEqual([409, "busy"]);
    api.bootstrap = "idle";
    const as = operator("admin");
    expect((await api.call("POST", "/v1/install", { json: { disk: { serial: "A" } }, as })).status).toBe(200);
  });
});
