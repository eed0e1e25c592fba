/** The small syntaxes: addresses, devices, names, durations. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { isIP } from "node:net";
import { deviceKey, devicePathProblem, isUnstableDevice, parseSize } from "./device.ts";
import { parseDuration } from "./duration.ts";
import { contains, maskCidr, overlaps, parseCidr, parseIp } from "./ip.ts";
import { isDnsName, isForbiddenNodeLabel, isQualifiedName, nearest } from "./names.ts";
import { formatPath } from "./path.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

describe("addresses", () => {
  test("leading zeros, zones, prefixes and ports are no address", () => {
    for (const text of ["010.9.0.7", "10.9.0.300", "fe80::1%eth0", "10.0.0.1/24", "10.0.0.1:80", "", "1.2.3"]) {
      expect([text, parseIp(text)]).toEqual([text, undefined]);
    }
    expect(parseCidr("10.0.0.0/08")).toBeUndefined();
    expect(parseCidr("::/129")).toBeUndefined();
  });

  test("agree with the runtime about what is an address", () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => expect(parseIp(text)?.family as number).toBe(isIP(text))),
    );
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), (text) => expect(parseIp(text)?.family ?? 0).toBe(isIP(text) as 0)),
    );
  });

  test("masking is idempotent and keeps the address inside", () => {
    const cidr = fc.oneof(
      fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })),
      fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })),
    );
    fc.assert(
      fc.property(cidr, ([address, prefix]) => {
        const masked = parseCidr(maskCidr(`${address}/${prefix}`));
        const ip = parseIp(address);
        if (masked === undefined || ip === undefined) throw new Error("not read");
        expect(masked.hasHostBits).toBe(false);
        expect(contains(masked, ip)).toBe(true);
      }),
    );
  });

  test("ranges of two families never overlap", () => {
    const [four, six] = [parseCidr("0.0.0.0/0"), parseCidr("::/0")];
    if (four === undefined || six === undefined) throw new Error("not read");
    expect(overlaps(four, six)).toBe(false);
  });
});

describe("devices", () => {
  test.each([
    ["/dev/sda1", "partition"],
    ["/dev/nvme0n1p2", "partition"],
    ["/dev/mmcblk0p1", "partition"],
    ["/dev/disk/by-id/ata-X-part2", "partition"],
    ["/dev/disk/by-uuid/1234", "partition"],
    ["/dev//sda", "not-normal"],
    ["/dev/../etc", "not-normal"],
    ["/dev/disk/", "not-normal"],
    ["/dev/md/data", "array"],
    ["/dev/md127", "array"],
    ["/dev/dm-0", "array"],
    ["/dev/md127p1", "partition"],
    ["/dev/null", "no-disk"],
    ["/dev/disk/by-id", "no-disk"],
    ["/dev/disk/by-id/a/b", "no-disk"],
    ["/dev/disk", "no-disk"],
    ["/dev/sd*", "glob"],
    ["/dev/disk/by-id/ata-[AB]", "glob"],
    ["/dev/nvme0", "no-disk"],
    ["/dev/ng0n1", "no-disk"],
    ["/dev/sr0", "no-disk"],
    ["/dev/fd0", "no-disk"],
    ["/dev/mmcblk0boot0", "no-disk"],
    ["/dev/loop0", "no-disk"],
    ["/dev/ram0", "no-disk"],
    ["/dev/zram1", "no-disk"],
    ["/dev/tty1", "no-disk"],
    ["/dev/vg/lv", "no-disk"],
    ["/dev/mapper/control", "no-disk"],
    ["sda", "not-dev"],
    ["/dev", "not-dev"],
  ] as const)("%s is no whole disk: %s", (path, why) => expect(devicePathProblem(path)).toBe(why));

  test.each([
    "/dev/sda",
    "/dev/sdaa",
    "/dev/vda",
    "/dev/nvme0n1",
    "/dev/mmcblk0",
    "/dev/dasda",
    "/dev/pmem0",
    "/dev/nbd0",
    "/dev/disk/by-path/pci-0000:03:00.0-scsi-0:0:1:0",
    "/dev/disk/by-id/nvme-A_b+c.1",
    "/dev/disk/by-diskseq/3",
    "/dev/mapper/mpatha",
    "/dev/block/8:0",
  ])("%s may be one", (path) => expect(devicePathProblem(path)).toBeUndefined());

  test("names by discovery order are told apart from stable ones", () => {
    expect(isUnstableDevice("/dev/sdb")).toBe(true);
    expect(isUnstableDevice("/dev/disk/by-id/ata-X")).toBe(false);
  });

  test("equal selectors are equal in whatever order", () => {
    expect(deviceKey({ serial: "A", type: "ssd" })).toBe(deviceKey({ type: "ssd", serial: "A" }));
    expect(deviceKey({ serial: "A" })).not.toBe(deviceKey({ model: "A" }));
  });

  test("sizes need their unit", () => {
    expect(parseSize("500GB")).toBe(500e9);
    expect(parseSize("1.5 TiB")).toBe(1.5 * 2 ** 40);
    expect(parseSize("20kB")).toBe(20_000);
    for (const text of ["500", "500G", "GB", "-1GB", "1e3GB", "5 PB"]) expect(parseSize(text)).toBeUndefined();
  });
});

describe("names", () => {
  test("a DNS name has no wildcard and no last label of digits", () => {
    for (const text of ["k8s", "api.example.net", "1.2.3.com"]) expect(isDnsName(text)).toBe(true);
    for (const text of ["*.example.net", "10.0.0", "a..b", "a.", "-a", "a_b", ""]) expect(isDnsName(text)).toBe(false);
  });

  test("labels that a kubelet may not give itself", () => {
    for (const key of ["node-role.kubernetes.io/worker", "kubernetes.io/x", "a.k8s.io/x"])
      expect(isForbiddenNodeLabel(key)).toBe(true);
    for (const key of [
      "kubernetes.io/arch",
      "node.kubernetes.io/x",
      "a.node.kubernetes.io/x",
      "example.com/x",
      "pool",
      "node.k0sproject.io/role",
    ]) {
      expect([key, isForbiddenNodeLabel(key)]).toEqual([key, false]);
    }
    expect(isQualifiedName("example.com/a/b")).toBe(false);
  });

  test("the nearest key", () => {
    expect(nearest("endpont", ["name", "endpoint"])).toBe("endpoint");
    expect(nearest("miror", ["disk", "mirror", "wipe"])).toBe("mirror");
    expect(nearest("xyzzy", ["name", "endpoint"])).toBeUndefined();
  });
});

describe("durations and paths", () => {
  test("units fall and stand once", () => {
    expect(parseDuration("1m30s")).toBe(90_000);
    expect(parseDuration("1h")).toBe(3_600_000);
    for (const text of ["", "90", "1s1m", "1.5h", "-1s", "1 m"]) expect(parseDuration(text)).toBeUndefined();
  });

  test("keys with dots and slashes are quoted", () => {
    expect(formatPath(["node", "labels", "example.com/x"])).toBe('node.labels["example.com/x"]');
    expect(formatPath(["wireguard", 0, "peers", 1, "endpoint"])).toBe("wireguard[0].peers[1].endpoint");
  });
});
