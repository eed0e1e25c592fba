/** How the initramfs finds the members of a mirrored system's arrays, in a machine with other disks beside them. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "initramfs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const block = join(folder, "block");
const programs = join(folder, "programs");
const calls = join(folder, "calls");
const script = readFileSync(join(import.meta.dir, "initramfs/scripts/corium"), "utf8");

/** The script as it is but for where the kernel shows its disks; no program but those in `programs`. */
function run(line: string): { readonly out: string; readonly errors: string } {
  writeFileSync(join(folder, "corium"), script.replaceAll("/sys/class/block", block));
  const ran = Bun.spawnSync(["/bin/sh", "-c", `. ${folder}/corium; ${line}`], { env: { PATH: programs } });
  return { out: ran.stdout.toString(), errors: ran.stderr.toString() };
}

test("no program is started for a partition that can't be a member: an emulated boot of a mirror hung for minutes", () => {
  const mine = "0123abcd-4567-89ab-cdef-000000000007";
  const of: Readonly<Record<string, string>> = { sda7: mine, sdb7: mine, sdc7: mine.replace("0123", "3210"), sdd7: "" };
  for (const disk of ["sda", "sdb", "sdc", "sdd"]) {
    mkdirSync(join(block, disk), { recursive: true });
    for (let number = 1; number <= 17; number += 1) {
      mkdirSync(join(block, `${disk}${number}`));
      writeFileSync(join(block, `${disk}${number}`, "partition"), `${number}\n`);
    }
  }
  mkdirSync(programs);
  const answers = Object.entries(of).map(([name, uuid]) => `/dev/${name}) echo ${uuid} ;;`);
  const blkid = `#!/bin/sh\nfor last; do :; done\necho "$last" >>${calls}\ncase "$last" in ${answers.join("\n")} esac\n`;
  writeFileSync(join(programs, "blkid"), blkid, { mode: 0o755 });
  // As mdadm writes it; sda17 is no partition 7.
  expect(run("corium_members 0123abcd:456789ab:cdef0000:00000007 7")).toEqual({
    out: "/dev/sda7\n/dev/sdb7\n",
    errors: "",
  });
  expect(readFileSync(calls, "utf8")).toBe("/dev/sda7\n/dev/sdb7\n/dev/sdc7\n/dev/sdd7\n");
});
