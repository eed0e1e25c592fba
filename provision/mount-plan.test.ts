import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { mountStep } from "./mount-plan.ts";

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
    try {
      for (const point of ["/var/lib/k0s/my data", `/var/lib/k0s/"o'`, "/var/lib/k0s/50%n", "/var/lib/k0s/ä  b"]) {
        const step = mountStep({ ...order, point });
        const [unit, dropIn] = step.files;
        const service = join(folder, "k0scontroller.service");
        writeFileSync(join(folder, step.unit), unit?.content ?? "");
        writeFileSync(service, `${dropIn?.content ?? ""}[Service]\nExecStart=/bin/true\n`);
        for (const file of [join(folder, step.unit), service]) {
          const said = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" }).stderr;
          expect({ point, said: said.split("\n").filter((line) => /not absolute|Where=|bad unit/.test(line)) }).toEqual(
            {
              point,
              said: [],
            },
          );
        }
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
