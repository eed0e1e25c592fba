/** Seeds on real block devices with the real tools: what is read, that nothing is written, that nothing stays mounted. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SeedReading } from "../../config/source.ts";
import { realHost } from "../../host/real.ts";
import { type AppError, formatError } from "../../kit/app-error.ts";
import type { BootFacts } from "../../kit/paths.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { seedReader } from "../../provision/seed/driver.ts";
import type { LoopDevice } from "./loop-device.ts";
import { attach, sh, whyNoLoop } from "./loop-device.ts";

const reason = whyNoLoop("mkfs.ext4", "sfdisk", "partx", "mount", "find", "base64");
if (reason !== undefined) process.stderr.write(`skipped test/loop: ${reason}\n`);

const scratch = mkdtempSync(join(tmpdir(), "corium-seed-"));
const folder = join(scratch, "mnt");
const devices: LoopDevice[] = [];
afterEach(() => {
  for (const device of devices.splice(0)) device.detach();
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Node {
  readonly path: string;
  readonly type: "disk" | "part";
  readonly size: number;
  readonly rm?: boolean;
  readonly label?: string;
  readonly fstype?: string;
  readonly children?: readonly Node[];
}

/** The real machine, but for lsblk: loop devices are no sticks. */
function hostWith(nodes: readonly Node[]): Host {
  const host = realHost();
  const stdout = JSON.stringify({ blockdevices: nodes });
  const answer = { exitCode: 0, signal: null, stderr: "", timedOut: false, truncated: false, durationMs: 0 };
  const exec: Host["exec"] = async (request) =>
    request.argv[0] === "lsblk" ? { ...answer, argv: request.argv, stdout } : host.exec(request);
  return { ...host, exec };
}

const stick = ({ path }: LoopDevice, more: Partial<Node> = {}): Node => ({
  path,
  type: "disk",
  size: 1,
  rm: true,
  ...more,
});

function ext4(label: string, fill: (root: string) => void, sizeMib = 8): LoopDevice {
  const root = mkdtempSync(join(scratch, "root-"));
  fill(root);
  const device = attach(sizeMib);
  devices.push(device);
  sh("mkfs.ext4", "-q", "-L", label, "-d", root, device.path);
  return device;
}

const look = (nodes: readonly Node[], boot?: BootFacts): Promise<Result<SeedReading, AppError>> =>
  seedReader(hostWith(nodes), { folder, ...(boot === undefined ? {} : { boot }) })();

async function read(nodes: readonly Node[], boot?: BootFacts) {
  const reading = await look(nodes, boot);
  if (!reading.ok) throw new Error(formatError(reading.error));
  const { files, notes } = reading.value;
  return {
    notes,
    files: files.map(({ origin, content }) => ({
      origin,
      text: content.ok ? Buffer.from(content.value).toString() : formatError(content.error),
    })),
  };
}

const isMounted = (): boolean => readFileSync("/proc/self/mounts", "utf8").includes(` ${folder} `);

describe.skipIf(reason !== undefined)("a seed on a real device", () => {
  test("is read without a byte written, and is not mounted afterwards", async () => {
    const own = ext4("CORIUM", (root) => writeFileSync(join(root, "config.yaml"), "role: single\n"));
    const other = ext4("cidata", (root) => writeFileSync(join(root, "user-data"), "#cloud-config\n"));
    const before = [own.digest(), other.digest()];
    expect((await read([stick(own), stick(other)])).files).toEqual([
      { origin: `config.yaml on ${own.path} (CORIUM)`, text: "role: single\n" },
      { origin: `user-data on ${other.path} (CIDATA)`, text: "#cloud-config\n" },
    ]);
    expect([own.digest(), other.digest()]).toEqual(before);
    expect(isMounted()).toBe(false);
  });

  test("whose journal was never replayed is not replayed by reading it", async () => {
    const device = ext4("CORIUM", () => {}, 32);
    const point = mkdtempSync(join(scratch, "dirty-"));
    sh("mount", device.path, point);
    writeFileSync(join(point, "config.yaml"), "role: single\n");
    sh("sync");
    // As it would be found after the plug was pulled: a copy of the disk while it was mounted.
    const pulled = attach(32);
    devices.push(pulled);
    sh("dd", `if=${device.path}`, `of=${pulled.path}`, "bs=1M", "status=none");
    sh("umount", point);
    const before = pulled.digest();
    const { files } = await read([stick(pulled)]);
    expect(files.map((file) => file.origin)).toEqual([`config.yaml on ${pulled.path} (CORIUM)`]);
    expect(pulled.digest()).toBe(before);
  });

  test("that is damaged is an error which names it, and nothing stays mounted", async () => {
    const device = ext4("CORIUM", (root) => writeFileSync(join(root, "config.yaml"), "role: single\n"));
    sh("dd", "if=/dev/zero", `of=${device.path}`, "bs=1M", "count=1", "conv=notrunc", "status=none");
    const [file] = (await read([stick(device, { label: "CORIUM", fstype: "ext4" })])).files;
    expect(file?.text).toContain(`${device.path} can't be mounted`);
    expect(isMounted()).toBe(false);
  });

  test("that is a link, a folder or too large is refused, not followed", async () => {
    for (const [wanted, fill] of [
      ["not a plain file", (root: string) => symlinkSync("/etc/hostname", join(root, "config.yaml"))],
      ["not a plain file", (root: string) => mkdirSync(join(root, "config.yaml"))],
      ["larger than 1 MiB", (root: string) => writeFileSync(join(root, "config.yaml"), "#".repeat(1_048_577))],
    ] as const) {
      const [file] = (await read([stick(ext4("CORIUM", fill))])).files;
      expect(file?.text).toContain(wanted);
    }
    const full = ext4("CORIUM", (root) => writeFileSync(join(root, "config.yaml"), "#".repeat(1_048_576)));
    expect((await read([stick(full)])).files[0]?.text).toHaveLength(1_048_576);
  });

  test("left mounted by a program that was killed does not stand in the way", async () => {
    const device = ext4("CORIUM", (root) => writeFileSync(join(root, "config.yaml"), "role: single\n"));
    mkdirSync(folder, { recursive: true });
    sh("mount", "-o", "ro", device.path, folder);
    expect((await read([stick(device)])).files[0]?.text).toBe("role: single\n");
    expect(isMounted()).toBe(false);
  });

  test("on a partition of the stick that the live system runs from can be read beside it", async () => {
    const device = attach(40);
    devices.push(device);
    // The live system's filesystem over the whole disk, which a hybrid ISO is too, and a partition behind its end.
    sh("mkfs.ext4", "-q", device.path, "16M");
    const label = spawnSync("sfdisk", ["-q", "--wipe", "never", "--no-reread", device.path], {
      input: "label: dos\nstart=40960, size=32768\n",
      encoding: "utf8",
    });
    expect(label.stderr).toBe("");
    sh("partx", "-u", device.path);
    const part = `${device.path}p1`;
    const root = mkdtempSync(join(scratch, "part-"));
    writeFileSync(join(root, "config.yaml"), "role: worker\n");
    sh("mkfs.ext4", "-q", "-L", "CORIUM", "-d", root, part);
    const mountPoint = mkdtempSync(join(scratch, "medium-"));
    sh("mount", "-o", "ro", device.path, mountPoint);
    try {
      const nodes = [stick(device, { rm: false, children: [{ path: part, type: "part", size: 1 }] })];
      const boot: BootFacts = { mode: "live", medium: { device: device.path, mountPoint } };
      expect((await read(nodes, boot)).files).toEqual([
        { origin: `config.yaml on ${part} (CORIUM)`, text: "role: worker\n" },
      ]);
    } finally {
      sh("umount", mountPoint);
    }
  });
});
