/** /etc on a node is volatile; a kept path is acknowledged only when its copy on the state partition is durable. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { realFiles } from "./files.ts";

let base = "";
let kept = "";
let etc = "";
let live = "";
beforeAll(async () => {
  base = await fs.mkdtemp(join(tmpdir(), "corium-kept-"));
  kept = join(base, "kept");
  etc = join(base, "etc");
  live = join(etc, "corium");
});
afterAll(() => fs.rm(base, { recursive: true, force: true }));

test("a kept file is written, renamed and removed in both places", async () => {
  const files = realFiles({ keptEtc: kept, etc });
  await files.write(`${live}/config.yaml`, "role: single\n", { mode: 0o600 });
  expect(await fs.readFile(join(kept, "corium/config.yaml"), "utf8")).toBe("role: single\n");
  expect((await fs.stat(join(kept, "corium/config.yaml"))).mode & 0o777).toBe(0o600);
  await files.rename(`${live}/config.yaml`, `${live}/older.yaml`);
  expect(await fs.readdir(join(kept, "corium"))).toEqual(["older.yaml"]);
  await files.remove(`${live}/older.yaml`);
  expect(await fs.readdir(join(kept, "corium"))).toEqual([]);
  expect(await fs.readdir(live)).toEqual([]);
});

test("when the copy can't be written the live file is not touched either", async () => {
  await fs.writeFile(join(kept, "blocker"), "");
  const files = realFiles({ keptEtc: join(kept, "blocker"), etc });
  expect((await files.write(`${live}/x`, "x", { mode: 0o600 })).ok).toBe(false);
  expect(await files.stat(`${live}/x`)).toEqual({ ok: true, value: null });
});

test("keep mirrors what another program made, its links and its absences", async () => {
  const files = realFiles({ keptEtc: kept, etc });
  await fs.mkdir(`${live}/tree/wants`, { recursive: true });
  await fs.writeFile(`${live}/tree/a`, "a", { mode: 0o640 });
  await fs.symlink("../a", `${live}/tree/wants/a`);
  expect((await files.keep(`${live}/tree/`)).ok).toBe(true);
  expect(await fs.readlink(join(kept, "corium/tree/wants/a"))).toBe("../a");
  expect((await fs.stat(join(kept, "corium/tree/a"))).mode & 0o777).toBe(0o640);
  await fs.rm(`${live}/tree/wants/a`);
  await files.keep(`${live}/tree`);
  expect(await fs.readdir(join(kept, "corium/tree/wants"))).toEqual([]);
  await fs.rm(`${live}/tree`, { recursive: true });
  await files.keep(`${live}/tree`);
  expect(await fs.readdir(join(kept, "corium"))).not.toContain("tree");
});

test("on an overlay only what differs from the image is kept, or old links would lie over those of a later image", async () => {
  const upper = join(base, "upper");
  const files = realFiles({ keptEtc: kept, etc, etcUpper: upper });
  for (const root of [etc, upper]) {
    await fs.mkdir(join(root, "systemd/system/multi-user.target.wants"), { recursive: true });
    await fs.symlink(
      "/etc/systemd/system/k0s.service",
      join(root, "systemd/system/multi-user.target.wants/k0s.service"),
    );
  }
  await fs.symlink("/usr/lib/systemd/system/fstrim.timer", join(etc, "systemd/system/fstrim.timer"));
  expect((await files.keep(join(etc, "systemd/system/"))).ok).toBe(true);
  expect(await fs.readdir(join(kept, "systemd/system"))).toEqual(["multi-user.target.wants"]);
  expect(await fs.readdir(join(kept, "systemd/system/multi-user.target.wants"))).toEqual(["k0s.service"]);
  await fs.rm(join(upper, "systemd"), { recursive: true });
  expect((await files.keep(join(etc, "systemd/system/multi-user.target.wants/k0s.service"))).ok).toBe(true);
  expect(await fs.readdir(join(kept, "systemd/system/multi-user.target.wants"))).toEqual([]);
});

test("an overlay that is not where it should be takes nothing away", async () => {
  const files = realFiles({ keptEtc: kept, etc, etcUpper: join(base, "nowhere") });
  expect((await files.keep(join(etc, "systemd/system/"))).ok).toBe(true);
  expect((await fs.readdir(join(kept, "systemd/system"))).toSorted()).toEqual([
    "fstrim.timer",
    "multi-user.target.wants",
  ]);
});

test("what is not on the list is not kept", async () => {
  await realFiles({ keptEtc: kept, etc }).write(join(etc, "motd"), "x", { mode: 0o644 });
  expect(await fs.readdir(kept)).not.toContain("motd");
});
