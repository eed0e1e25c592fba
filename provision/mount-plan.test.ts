import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, setDefaultTimeout, test } from "bun:test";
import { countedUuids, machine, mirror, plainDisk, storageDocument } from "../test/machines/machines.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { mountStep } from "./mount-plan.ts";
import { planStorage } from "./storage.ts";
import { readHidden } from "./storage/driver.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const order = {
  id: "mount:data",
  name: "data",
  uuid: "0e9554b0-c265-4354-9dd2-04caa654d74e",
  filesystem: "ext4",
  role: "single",
} as const;
const verify = Bun.which("systemd-analyze");
if (verify === null) process.stderr.write("skipped provision/mount-plan: needs systemd-analyze\n");

const required = (point: string): string =>
  mountStep({ ...order, point })
    .files.map(({ content }) => /^RequiresMountsFor=.*$/m.exec(content)?.[0])
    .find((line) => line !== undefined) ?? "";

test("a blank in a mount point: k0s did not wait for the mount, for a path without what follows the blank", () => {
  expect(required("/var/lib/k0s")).toBe("RequiresMountsFor=/var/lib/k0s");
  expect(required("/var/lib/k0s/my data")).toBe('RequiresMountsFor="/var/lib/k0s/my data"');
  expect(required(`/var/lib/k0s/"o'`)).toBe(`RequiresMountsFor="/var/lib/k0s/\\"o'"`);
});

test.skipIf(verify === null)(
  "systemd reads each mount point as one path, and finds that it fits the unit's name",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "corium-units-"));
    const verified = (files: readonly string[]): readonly string[] =>
      spawnSync("systemd-analyze", ["verify", "--man=no", ...files], { encoding: "utf8" })
        .stderr.split("\n")
        .filter((line) => /not absolute|Where=|bad unit/.test(line));
    const write = (name: string, content: string): string => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    const service = "[Service]\nExecStart=/bin/true\n";
    try {
      const points = ["/var/lib/k0s/my data", `/var/lib/k0s/"o'`, "/var/lib/k0s/50%n", "/var/lib/k0s/ä  b"];
      const files = points.flatMap((point, at) => {
        const step = mountStep({ ...order, point });
        const [unit, dropIn] = step.files.map(({ content }) => content);
        return [write(step.unit, unit ?? ""), write(`k0s-${at}.service`, `${dropIn ?? ""}${service}`)];
      });
      expect(verified(files)).toEqual([]);
      // As it was before: systemd does say so.
      const bare = write("bare.service", `[Unit]\nRequiresMountsFor=/var/lib/k0s/my data\n${service}`);
      expect(verified([bare])).toHaveLength(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

test("a mount point with something in it was refused after the disk for it had been wiped", async () => {
  const document = storageDocument({
    raid: [mirror({ mountPoint: "/srv/mounted" })],
    disks: [plainDisk({ device: { serial: "C" }, mountPoint: "/var/lib/systemd" })],
  });
  const pair = machine("blank-pair");
  const third = { ...pair.disks[1], path: "/dev/vdd", links: [], identity: { serial: "C", sizeBytes: 1 } };
  const inventory = { ...pair, disks: [...pair.disks, third as (typeof pair.disks)[number]] };
  const host = fakeHost({
    files: {
      "/var/lib/systemd/random-seed": "x",
      "/var/lib/systemd/timers/a": "x",
      "/srv/mounted/photos": "x",
    },
    programs: {
      findmnt: () => JSON.stringify({ filesystems: [{ target: "/srv/mounted", source: "/dev/md127", uuid: "u" }] }),
    },
  });
  const hidden = await readHidden(host, document);
  // What is in the mounted filesystem is hidden by nothing.
  expect([...hidden]).toEqual([["/var/lib/systemd", ["random-seed", "timers"]]]);
  const input = { document, inventory, owned: [], intents: [], uuid: countedUuids() };
  expect(planStorage(input).steps.length).toBeGreaterThan(0);
  const refused = planStorage({ ...input, hidden });
  expect(refused.steps).toEqual([]);
  expect(refused.findings).toMatchObject([
    {
      severity: "error",
      code: "point-not-empty",
      path: "disks[0].mountPoint",
      message: "/var/lib/systemd is not empty, and the mount would hide what is in it: random-seed, timers",
    },
  ]);
});
