/** The scripts of iso/rootfs-storage that start arrays at boot, with stand-ins for mdadm and lsblk. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { arrayPath } from "./argv.ts";
import { renderArrayConfig } from "./render.ts";

// Shell scripts that sleep.
setDefaultTimeout(60_000);

const tree = join(import.meta.dir, "../iso/rootfs-storage");
const uuid = "557c5b94:881be2de:bc5f369b:49d8761f";
const dashed = "557c5b94-881b-e2de-bc5f-369b49d8761f";
const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A root with one recorded array; `lsblk` shows as many members as asked, one more each second if they trickle in. */
function machine(options: {
  members: number;
  trickle?: boolean;
  canStart?: boolean;
  running?: boolean;
  /** How many members the kernel misses once it runs: none, when only a spare is not there. */
  degraded?: number;
}) {
  const root = mkdtempSync(join(tmpdir(), "corium-arrays-"));
  folders.push(root);
  const put = (path: string, text: string, mode = 0o644): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    chmodSync(join(root, path), mode);
  };
  const config = renderArrayConfig({ name: "data", uuid, memberCount: 2 });
  put(config.path, config.content);
  put("etc/mdadm/mdadm.conf", "AUTO -all\n");
  put("members", String(options.members));
  if (options.running === true) put("sys/block/md127/md/array_state", "active\n");
  const state = join(root, "sys/block/md127/md");
  const start =
    options.canStart === false
      ? "exit 1"
      : `mkdir -p ${state}; echo clean > ${state}/array_state; echo ${options.degraded ?? 1} > ${state}/degraded`;
  put(
    "bin/mdadm",
    `#!/bin/sh\necho "$@" >> ${root}/log\ncase "$1" in\n--detail) echo MD_UUID=${uuid} ;;\n--assemble) ${start} ;;\nesac\n`,
    0o755,
  );
  const more = options.trickle === true ? `echo $((n + 1)) > ${root}/members` : ":";
  put(
    "bin/lsblk",
    `#!/bin/sh\nn=$(cat ${root}/members)\ni=0\nwhile [ $i -lt $n ]; do echo "/dev/vd$i ${dashed}"; i=$((i+1)); done\necho "/dev/vdz 11111111-881b-e2de-bc5f-369b49d8761f"\n${more}\n`,
    0o755,
  );
  return (verb: string, wait = "1") => {
    const ran = spawnSync(join(tree, "usr/lib/corium/arrays"), [verb], {
      encoding: "utf8",
      env: { PATH: `${root}/bin:/usr/bin:/bin`, CORIUM_ROOT: root, CORIUM_WAIT: wait },
    });
    const log = existsSync(join(root, "log")) ? readFileSync(join(root, "log"), "utf8") : "";
    return { ...ran, mdadm: log.split("\n").filter((line) => line !== "" && !line.startsWith("--detail")) };
  };
}

const assembled = (line: string | undefined): boolean =>
  /^ --config=\S+ --run \/dev\/vd0( \/dev\/vd1)?$/.test(line?.split(`--assemble /dev/md/data --uuid=${uuid}`)[1] ?? "");

describe("arrays assemble", () => {
  test("all members here: started at once, by UUID, without a word", () => {
    const ran = machine({ members: 2 })("assemble", "30");
    expect(ran).toMatchObject({ status: 0, stdout: "" });
    expect(ran.mdadm.map(assembled)).toEqual([true]);
  });

  test("a member that is late is waited for", () => {
    const ran = machine({ members: 1, trickle: true })("assemble", "30");
    expect(ran).toMatchObject({ status: 0, stdout: "" });
    expect(ran.mdadm.length).toBe(1);
  });

  test("B029, B030: one member gone for good: started degraded after the time limit, and said", () => {
    const ran = machine({ members: 1 })("assemble");
    expect(ran).toMatchObject({ status: 0, stdout: "array data is DEGRADED: started with 1 of 2 members\n" });
    expect(ran.mdadm.map(assembled)).toEqual([true]);
  });

  test("a spare gone for good: the array is started after the same limit, and is not called degraded", () => {
    const ran = machine({ members: 1, degraded: 0 })("assemble");
    expect(ran).toMatchObject({ status: 0, stdout: "array data lacks a spare: started with 1 of 2 members\n" });
    expect(ran.mdadm.map(assembled)).toEqual([true]);
  });

  test("B031: what an array is called in the kernel, and its disks, decides nothing: only its UUID is asked for", () => {
    const [line = ""] = machine({ members: 2 })("assemble").mdadm;
    expect(line).not.toMatch(/\/dev\/md\d/);
    expect(arrayPath(uuid)).toBe(`/dev/disk/by-id/md-uuid-${uuid}`);
  });

  test("mdadm crashed over somebody else's metadata while it searched: it is given the devices of our UUID alone", () => {
    const [line = ""] = machine({ members: 2 })("assemble").mdadm;
    expect(line.split(" --run ")[1]).toBe("/dev/vd0 /dev/vd1");
    // Without any there is nothing to be searched for.
    const none = machine({ members: 0 })("assemble");
    expect([none.mdadm, none.stdout]).toEqual([[], "array data could not be started, 0 of 2 members are here\n"]);
  });

  test("an array that can't start is a failure that says how many members are here", () => {
    const ran = machine({ members: 1, canStart: false })("assemble");
    expect(ran).toMatchObject({ status: 1, stdout: "array data could not be started, 1 of 2 members are here\n" });
  });

  test("one that runs is left alone", () => {
    expect(machine({ members: 2, running: true })("assemble").mdadm).toEqual([]);
  });
});

test("arrays detached: a pulled disk is failed in an array that runs, nothing is done to one that does not", () => {
  expect(machine({ members: 2, running: true })("detached").mdadm).toEqual([
    "/dev/md127 --fail detached --remove detached",
  ]);
  expect(machine({ members: 2 })("detached").mdadm).toEqual([]);
});

describe("the tree that is laid over the image", () => {
  test("mdadm.conf assembles nothing, and has the line that saves it from the initramfs hook", () => {
    const config = readFileSync(join(tree, "etc/mdadm/mdadm.conf"), "utf8");
    for (const line of ["HOMEHOST <none>", "AUTO -all"]) expect(config.split("\n")).toContain(line);
    expect(config).toMatch(/^ARRAY <ignore> /m);
  });

  test("vendor rules are overridden by empty regular files, for the hook does not see links", () => {
    const rules = join(tree, "etc/udev/rules.d");
    const names = readdirSync(rules);
    expect(names).toContain("64-md-raid-assembly.rules");
    for (const name of names) {
      expect(lstatSync(join(rules, name)).isFile()).toBe(true);
      expect(lstatSync(join(rules, name)).size).toBe(0);
    }
  });

  test("scripts are executable, and the shell can read them", () => {
    for (const name of readdirSync(join(tree, "usr/lib/corium"))) {
      const path = join(tree, "usr/lib/corium", name);
      expect(lstatSync(path).mode & 0o111).toBe(0o111);
      expect(spawnSync("sh", ["-n", path]).status).toBe(0);
    }
  });
});
