/** `k0s install`: the unit it writes and what it refuses; see test/contract/program.ts for a real k0s. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { testNeeding } from "../runner/needs.ts";
import { openProgram, realNeeds, type Program } from "./program.ts";

const CONTROLLER = "/etc/systemd/system/k0scontroller.service";
const WORKER = "/etc/systemd/system/k0sworker.service";

let k0s: Program;
beforeEach(async () => {
  k0s = await openProgram();
  k0s.write("/etc/k0s/k0s.yaml", (await k0s.run(["config", "create"])).stdout);
});
afterEach(async () => {
  if (existsSync(k0s.host(CONTROLLER)) || existsSync(k0s.host(WORKER))) await k0s.run(["reset"]);
  await k0s.dispose();
});

const unit = (path: string): readonly string[] => readFileSync(k0s.host(path), "utf8").split("\n");
const command = (path: string): string =>
  (unit(path).find((line) => line.startsWith("ExecStart=")) ?? "").replace(/^ExecStart=\S+ /, "");

const needs = realNeeds("root", "systemd");

describe("install controller", () => {
  testNeeding(needs, "writes a unit whose flags are sorted, with = and absolute paths", async () => {
    const argv = ["install", "controller", "--single", "-c", "etc/k0s/k0s.yaml", "--labels", "b=2,a=1"];
    const ran = await k0s.run([...argv, "--kubelet-extra-args", "--node-ip=10.0.0.1"]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(command(CONTROLLER)).toBe(
      `controller --config=${k0s.directory}/etc/k0s/k0s.yaml --kubelet-extra-args=--node-ip=10.0.0.1 --labels=b=2,a=1 --single=true`,
    );
  });
  testNeeding(needs, "writes the settings a wrapper relies on", async () => {
    await k0s.run(["install", "controller", "--config", "/etc/k0s/k0s.yaml", "--env", "A=b"]);
    const lines = unit(CONTROLLER);
    for (const line of [
      "After=network-online.target",
      "Wants=network-online.target",
      "Restart=always",
      "RestartSec=10",
      "Delegate=yes",
      "KillMode=process",
      "TasksMax=infinity",
      "TimeoutStartSec=0",
      'Environment="A=b"',
      "WantedBy=multi-user.target",
    ])
      expect(lines.map((each) => each.trim())).toContain(line);
    expect(lines.some((line) => line.startsWith("Type="))).toBe(false);
  });
  testNeeding(needs, "escapes spaces in a flag, and only spaces", async () => {
    await k0s.run(["install", "controller", "--kubelet-extra-args", "--v=2 --node-ip=10.0.0.1"]);
    expect(command(CONTROLLER)).toContain("--kubelet-extra-args=--v=2\\x20--node-ip=10.0.0.1");
  });
  testNeeding(needs, "a second time is Init already exists, and the unit stays as it is", async () => {
    await k0s.run(["install", "controller", "--config", "/etc/k0s/k0s.yaml"]);
    const before = unit(CONTROLLER);
    const ran = await k0s.run(["install", "controller", "--config", "/etc/k0s/k0s.yaml", "--enable-worker"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toMatch(/^Error: failed to install controller service: .*Init already exists: \/etc\/systemd/m);
    expect(unit(CONTROLLER)).toEqual(before);
  });
  testNeeding(needs, "--force writes it anew", async () => {
    await k0s.run(["install", "controller", "--config", "/etc/k0s/k0s.yaml"]);
    const ran = await k0s.run(["install", "controller", "--config", "/etc/k0s/k0s.yaml", "--enable-worker", "--force"]);
    expect(ran.exitCode).toBe(0);
    expect(command(CONTROLLER)).toBe("controller --config=/etc/k0s/k0s.yaml --enable-worker=true");
  });
  testNeeding(needs, "--force on a first install only warns", async () => {
    const ran = await k0s.run(["install", "controller", "--force"]);
    expect(ran.exitCode).toBe(0);
    expect(ran.stderr).toContain("failed to uninstall service");
  });
  testNeeding(needs, "a configuration that is not valid installs nothing", async () => {
    k0s.write("/etc/k0s/bad.yaml", "spec: {network: {provider: cilium}}\n");
    const ran = await k0s.run([
      "install",
      "controller",
      "--config",
      k0s.host("/etc/k0s/bad.yaml").replace(k0s.directory, ""),
    ]);
    expect(ran.exitCode).toBe(1);
    expect(existsSync(k0s.host(CONTROLLER))).toBe(false);
  });
});

describe("install worker", () => {
  testNeeding(needs, "checks nothing, not even the token file", async () => {
    const ran = await k0s.run(["install", "worker", "--token-file", "/etc/k0s/none"]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(command(WORKER)).toBe("worker --token-file=/etc/k0s/none");
  });
});
