import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { parseStatus, parseUnit, parseVersion } from "./parse.ts";
import { isSameCommand, wantedCommand } from "./unit.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const status = (more: object): string =>
  JSON.stringify({
    Version: "v1.36.3+k0s.2",
    Pid: 7,
    Role: "controller",
    Workloads: false,
    SingleNode: false,
    ...more,
  });

describe("status", () => {
  test("as the stand-in printed it, whole", async () => {
    const text = await Bun.file(new URL("testdata/status-controller.json", import.meta.url)).text();
    expect(parseStatus(text)).toEqual({
      ok: true,
      value: { version: "v1.36.4+k0s.1-sim", pid: 1809, role: "controller" },
    });
  });

  test("controller+worker is not taken for a controller", () => {
    const roles = [{}, { Workloads: true }, { Workloads: true, SingleNode: true }, { Role: "worker", Workloads: true }];
    const found = roles.map((more) => parseStatus(status(more))).map((one) => (one.ok ? one.value.role : one.error));
    expect(found).toEqual(["controller", "controller+worker", "single", "worker"]);
  });

  test("the worker's connection is read, and its reason", () => {
    const text = status({ Role: "worker", WorkerToAPIConnectionStatus: { Message: "x509: expired", Success: false } });
    expect(parseStatus(text)).toMatchObject({ value: { isConnected: false, connectionMessage: "x509: expired" } });
  });

  test("anything else is an error, never an exception", () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => !parseStatus(text).ok));
    expect(parseStatus(status({ Role: "etcd" })).ok).toBe(false);
  });
});

test("versions: k0s's own, and the stand-in's", () => {
  expect(parseVersion("v1.36.3+k0s.2\n")).toEqual({ ok: true, value: "v1.36.3+k0s.2" });
  expect(parseVersion("v1.36.4+k0s.1-sim\n").ok).toBe(true);
  expect(parseVersion("v1.37.0-alpha.1+k0s.0").ok).toBe(true);
  expect(parseVersion("1.36.3").ok).toBe(false);
});

describe("units", () => {
  const argv = [
    "install",
    "worker",
    "--token-file",
    "/etc/k0s/join-token",
    "--kubelet-extra-args",
    "--node-ip=192.0.2.9",
    "--labels",
    "a=b,c=d",
  ];
  // As the library that k0s uses writes it: sorted, --name=value.
  const unit = `[Service]
StartLimitInterval=5
ExecStart=/usr/bin/k0s worker --kubelet-extra-args=--node-ip=192.0.2.9 --labels=a=b,c=d --token-file=/etc/k0s/join-token
`;

  test("what k0s wrote is the same command as what it was asked for", () => {
    const found = parseUnit(unit);
    expect(found.ok && isSameCommand(found.value, wantedCommand(argv))).toBe(true);
  });

  test("one flag more, less or other is another command", () => {
    for (const other of [
      unit.replace("a=b", "a=c"),
      unit.replace(" --labels=a=b,c=d", ""),
      unit.replace("worker --", "worker --debug=true --"),
      unit.replace(" worker ", " controller "),
      unit.replace("/usr/bin", "/opt"),
    ]) {
      const found = parseUnit(other);
      expect(found.ok && isSameCommand(found.value, wantedCommand(argv))).toBe(false);
    }
  });

  test("a file without ExecStart is no unit of k0s", () => {
    expect(parseUnit("[Unit]\nDescription=x\n").ok).toBe(false);
  });
});
