import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { Socket } from "node:net";
import { join } from "node:path";
import { testNeeding } from "../../runner/needs.ts";
import { qemuArgv, type Wiring } from "./argv.ts";
import { createRaw, makeFilesystem, makeForeignArray, runTool, sha256, writeAt } from "./disk.ts";
import { createTestCa, startServer } from "./http.ts";
import { attachSerial, stripTerminal } from "./serial.ts";

const directory = mkdtempSync(join(tmpdir(), "corium-harness-"));
afterAll(() => {
  rmSync(directory, { recursive: true });
});
const fresh = (name: string, sizeMiB = 16): string => createRaw(join(directory, name), sizeMiB);

const wiring: Wiring = {
  accel: "tcg",
  directory: "/tmp/x",
  consoleLog: "/tmp/x/log",
  diskPaths: ["/tmp/a,b.raw", "/tmp/c.raw"],
  ports: new Map([[7443, 40_001]]),
};

test("a kernel that the emulator broke is told from one that panics by itself, once, wherever the line is cut", () => {
  const told = (...chunks: readonly string[]): number => {
    let times = 0;
    const socket = new Socket();
    attachSerial(socket, "t", () => (times += 1));
    for (const chunk of chunks) socket.emit("data", Buffer.from(chunk));
    socket.destroy();
    return times;
  };
  expect(told("[    1.73] Oops: int3: 00", "00 [#1] PREEMPT\nKernel panic - not syncing: Fatal", "exception")).toBe(1);
  expect(told("[    1.73] Oops: general protection fault", "\nKernel panic - not syncing: Fatal")).toBe(0);
  const dump = (flags: string): readonly string[] => [
    "double fault: 0000\nRSP: 0018:ffffd0bd0097bb10 EFL",
    `AGS: ${flags}\n`,
  ];
  expect(told(...dump("79f39242"))).toBe(1);
  expect(told(...dump("00010282"), ...dump("00200246"))).toBe(0);
});

describe("the command line of QEMU", () => {
  const argv = qemuArgv(
    {
      name: "t",
      disks: [
        { serial: "A", isPullable: true, bootIndex: 0 },
        { serial: "B", bus: "scsi", sectorBytes: 4096, writeLog: "/tmp/w.log" },
      ],
      pxe: { file: "http://10.0.2.2:80/boot.ipxe" },
    },
    wiring,
  ).join(" ");
  test("a comma in a path does not end the option", () => expect(argv).toContain("filename=/tmp/a,,b.raw"));
  test("a pullable disk sits behind a root port", () => expect(argv).toContain("bus=port0"));
  test("a logged disk writes through its log", () => {
    expect(argv).toContain("driver=blklogwrites,node-name=log1,file=img1");
    expect(argv).toContain("scsi-hd,id=disk1,drive=log1,serial=B,logical_block_size=4096");
  });
  test("disks with one log are parts of one image, one after another", () => {
    const disks = [
      { serial: "A", sizeMiB: 3 },
      { serial: "B", sizeMiB: 2 },
    ];
    const sliced = qemuArgv({ name: "t", disks, sharedLog: { path: "/tmp/all.raw", log: "/tmp/w.log" } }, wiring);
    const nodes = sliced.filter((word) => word.includes("file=shared,"));
    expect(nodes).toEqual([
      "driver=raw,node-name=img0,file=shared,offset=0,size=3145728,discard=unmap",
      "driver=raw,node-name=img1,file=shared,offset=3145728,size=2097152,discard=unmap",
    ]);
    expect(sliced.filter((word) => word.includes("share-rw=on"))).toHaveLength(2);
  });
  test("ports are forwarded on the loopback only", () => expect(argv).toContain("hostfwd=tcp:127.0.0.1:40001-:7443"));
});

test("with a kernel of its own a machine gives no disk a boot index: QEMU takes 0 for the kernel", () => {
  const disks = [{ serial: "A", bootIndex: 0 }];
  const direct = qemuArgv({ name: "t", disks, kernel: { path: "/k", append: "" } }, wiring).join(" ");
  expect(direct).not.toContain("bootindex");
  expect(qemuArgv({ name: "t", disks }, wiring).join(" ")).toContain(
    "serial=A,logical_block_size=512,physical_block_size=512,bootindex=0",
  );
});

test("escapes of a terminal vanish, even when cut in two", () => {
  const first = stripTerminal("a\u001b[2J\u001b[1;1Hb\r\nc\u001b[3");
  expect(first).toEqual({ text: "ab\nc", rest: "\u001b[3" });
  expect(stripTerminal(`${first.rest}1md`).text).toBe("d");
});

test("one changed byte changes a disk's hash", () => {
  const disk = fresh("hash");
  const before = sha256(disk);
  expect(sha256(disk)).toBe(before);
  writeAt(disk, 12_345_678, new Uint8Array([1]));
  expect(sha256(disk)).not.toBe(before);
});

testNeeding(["mdadm"], "mdadm takes our superblocks for those of an array", async () => {
  for (const level of [0, 1, 5]) {
    const members = ["m0", "m1", "m2"].map((name) => fresh(`${level}-${name}`));
    makeForeignArray(members, { name: "data", level, sizeMiB: 16 });
    for (const [role, path] of members.entries()) {
      const text = await runTool(["mdadm", "--examine", path]);
      expect(text).toMatch(/Checksum : \w+ - correct/);
      expect(text).toContain("Name : otherhost:data");
      expect(text).toContain(`Raid Level : raid${level}`);
      expect(text).toContain(`Device Role : Active device ${role}`);
      expect(text).toContain("Array State : AAA");
      expect(text).toMatch(/State : clean/);
    }
  }
});

testNeeding(["mkfs.ext4", "blkid"], "a filesystem over the whole disk is what blkid finds", async () => {
  const disk = fresh("old");
  await makeFilesystem(disk, "ext4");
  expect(await runTool(["blkid", "-p", "-o", "export", disk])).toMatch(/LABEL=OLD-DATA[\s\S]*TYPE=ext4/);
});

test("the test servers speak http and https and record what was asked", async () => {
  const ca = await createTestCa();
  const server = startServer({ tls: await ca.server(), respond: () => new Response("hi") });
  try {
    const answer = await fetch(`https://127.0.0.1:${server.port}/x`, { tls: { ca: ca.cert } });
    expect(await answer.text()).toBe("hi");
    expect(server.requests).toEqual(["GET /x"]);
    await expect(fetch(`https://127.0.0.1:${server.port}/x`)).rejects.toThrow();
  } finally {
    server.stop();
  }
});
