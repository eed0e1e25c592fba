/** A first boot with an encrypted volume whose passphrase is fetched: where the secret goes, and where it does not. */
import { expect, test } from "bun:test";
import { ok } from "../kit/result.ts";
import { k0sExecutors } from "../k0s/driver.ts";
import { nodeExecutors } from "../provision/steps.ts";
import { storageExecutors } from "../provision/storage/driver.ts";
import { services, world } from "../test/support/first-boot.ts";
import type { World } from "../test/support/first-boot.ts";
import type { FakeLuks } from "../test/support/fake-luks.ts";
import { fakeLuks } from "../test/support/fake-luks.ts";
import { wireguardExecutors } from "../wireguard/driver.ts";
import { bootstrap } from "./bootstrap.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";

const PASSPHRASE = "a horse of no battery";
const document = `role: single
luks:
  - name: vault
    device: {serial: A}
    unlock: passphrase
    passphraseFrom: {file: /media/key/vault}
    filesystem: none
`;

function machine(text = document): { of: World; luks: FakeLuks; given: BootstrapServices } {
  const luks = fakeLuks({ "/dev/vdb": { serial: "A" } });
  const of = world(text, { "/media/key/vault": `${PASSPHRASE}\n`, "/dev/vdb": "" });
  for (const [name, program] of Object.entries(luks.programs)) of.host.programs.set(name, program);
  of.host.unitTable.set("systemd-cryptsetup@corium\\x2dluks\\x2dvault.service", {
    activeState: "inactive",
    subState: "dead",
    loadState: "loaded",
    isEnabled: false,
    restarts: 0,
    result: "",
    mainPid: 0,
    journal: [],
    onStart: (fake) => luks.openByCrypttab("corium-luks-vault", fake),
  });
  const given = services(of, {
    readInventory: async () => ok(luks.inventory()),
    executors: (ports) => ({
      ...nodeExecutors(ports),
      ...storageExecutors,
      ...wireguardExecutors,
      ...k0sExecutors,
    }),
  });
  return { of, luks, given };
}

test("the passphrase is in the key file, and in nothing that is recorded, shown or called", async () => {
  const { of, luks, given } = machine();
  expect(await bootstrap(given)).toBe(0);
  expect(luks.open.get("corium-luks-vault")).toBe("/dev/vdb");
  expect(of.host.text("/var/lib/corium/luks/vault.key")).toBe(PASSPHRASE);
  expect(of.state.owned.list()).toMatchObject([{ kind: "luks", name: "vault", disks: [{ serial: "A" }] }]);
  const told = JSON.stringify([
    of.state.journal.intents(),
    of.state.operations.list(),
    of.state.events.last(),
    of.state.documents.list(),
    of.state.baseline.get(),
    of.host.calls,
  ]);
  expect(told).not.toContain("horse");
  const others = of.host.paths("/").filter((path) => of.host.text(path)?.includes("horse") === true);
  expect(others.filter((path) => path.startsWith("/etc") || path.startsWith("/var"))).toEqual([
    "/var/lib/corium/luks/vault.key",
  ]);
});

test("the source gave it once only: after a failure the kept one is good", async () => {
  const { of, luks, given } = machine();
  const unit = of.host.unitTable.get("systemd-cryptsetup@corium\\x2dluks\\x2dvault.service");
  const { onStart } = unit ?? {};
  Object.assign(unit ?? {}, { onStart: () => ({ ok: false, error: { code: "unit-failed", message: "not now" } }) });
  expect(await bootstrap(given)).toBe(1);
  expect(luks.open.size).toBe(0);
  of.host.drop("/media/key/vault");
  Object.assign(unit ?? {}, { onStart, activeState: "inactive" });
  expect(await bootstrap(given)).toBe(0);
  expect(luks.disks.get("/dev/vdb")?.header?.slots).toEqual([{ kind: "password", opens: PASSPHRASE }]);
});
