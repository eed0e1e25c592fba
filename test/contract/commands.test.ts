/** What k0s says and how it exits when it does not run; see test/contract/program.ts for a real one. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createServer } from "node:net";
import { join } from "node:path";
import { parse } from "yaml";
import { testNeeding } from "../runner/needs.ts";
import { isReal, openProgram, realNeeds } from "./program.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const k0s = await openProgram();
afterAll(() => k0s.dispose());

describe("exit codes and texts", () => {
  test("version is one line, v<kubernetes>+k0s.<n>", async () => {
    const ran = await k0s.run(["version"]);
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    expect(ran.stdout).toMatch(/^v\d+\.\d+\.\d+(?:-\w+(?:\.\d+)?)?\+k0s\.\d+(?:-sim)?\n$/);
  });
  testNeeding(["the stand-in"], "the stand-in says in version and help that it is one", async () => {
    expect((await k0s.run(["version"])).stdout).toContain("-sim");
    expect((await k0s.run([])).stdout).toContain("stand-in");
  });
  test("version -j names the parts", async () => {
    const parts = JSON.parse((await k0s.run(["version", "-j"])).stdout) as Record<string, string>;
    expect(Object.keys(parts).toSorted()).toEqual(
      ["containerd", "etcd", "k0s", "kine", "konnectivity", "kubernetes", "runc"].toSorted(),
    );
  });
  test.each([[["install"]], [["config"]], [["token"]], [["etcd"]], [["kubeconfig"]]])(
    "%p without a subcommand prints help and exits 0",
    async (argv) => {
      const ran = await k0s.run(argv);
      expect(ran.exitCode).toBe(0);
      expect(ran.stdout).toContain("Usage:");
    },
  );
  test.each([
    ["an unknown command", ["frobnicate"], /^Error: unknown command "frobnicate" for "k0s"/],
    ["an unknown flag", ["status", "--frobnicate"], /^Error: unknown flag: --frobnicate/],
    ["a flag without its value", ["status", "--status-socket"], /^Error: flag needs an argument: --status-socket/],
  ])("%s is exit 1 with Error: on stderr and no usage", async (_name, argv, text) => {
    const ran = await k0s.run(argv);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toMatch(text);
    expect(ran.stderr).not.toContain("Usage:");
  });
});

describe("status of a k0s that does not run", () => {
  const socket = join(k0s.directory, "none.sock");
  test.each([[[]], [["-o", "json"]], [["-o", "yaml"]]])("with %p: nothing on stdout, exit 1", async (more) => {
    const ran = await k0s.run(["status", "--status-socket", "/tmp/none/s.sock", ...more]);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toBe(
      `Error: status: can't get "status" via "/tmp/none/s.sock": Get "http://localhost/status": dial unix /tmp/none/s.sock: connect: no such file or directory\n`,
    );
  });
  test("a stale socket is connection refused", async () => {
    const stale = k0s.host(socket);
    await Bun.write(join(stale, "../x"), "");
    // Node unlinks a socket that it closes: a process that is killed leaves it.
    const script = `require("node:net").createServer().listen(${JSON.stringify(stale)}, () => process.kill(process.pid, "SIGKILL"))`;
    await Bun.spawn([process.execPath, "-e", script]).exited;
    const ran = await k0s.run(["status", "--status-socket", socket]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toEndWith(`dial unix ${socket}: connect: connection refused\n`);
  });
  test("a socket that never answers is the caller's to give up on", async () => {
    const path = join(k0s.directory, "hang.sock");
    const server = createServer(() => undefined);
    await new Promise<void>((done) => {
      server.listen(k0s.host(path), () => done());
    });
    try {
      const ran = await k0s.run(["status", "--status-socket", path], { timeoutMs: 1500 });
      expect(ran.exitCode).not.toBe(0);
      expect(ran.stdout).toBe("");
    } finally {
      server.close();
    }
  });
});

describe("sysinfo", () => {
  test("as JSON it lists what was probed, by category", async () => {
    const ran = await k0s.run(["sysinfo", "--controller=false", "-o", "json"]);
    const rows = JSON.parse(ran.stdout) as readonly { readonly category: string; readonly displayName: string }[];
    const isBad = rows.some((row) => row.category === "rejected" || row.category === "error");
    expect(rows.length).toBeGreaterThan(3);
    expect(ran.exitCode).toBe(isBad ? 1 : 0);
    if (isBad) expect(ran.stderr).toContain("sysinfo failed");
  });
});

describe("token pre-shared, offline", () => {
  test("writes the Secret and a token that decodes to a kubeconfig of its role", async () => {
    const authority = await import("../qemu/k0s-sim/certificates.ts").then((it) => it.createAuthority("kubernetes-ca"));
    for (const [role, user] of [
      ["worker", "kubelet-bootstrap"],
      ["controller", "controller-bootstrap"],
    ] as const) {
      const out = join(k0s.directory, role);
      await Bun.write(join(out, "ca.crt"), authority.cert);
      const argv = ["token", "pre-shared", "--cert", join(out, "ca.crt"), "--url", "https://10.0.0.1:6443"];
      const ran = await k0s.run([...argv, "--role", role, "--out", out, "--valid", "1h"]);
      expect(ran.exitCode).toBe(0);
      const [file] = [...new Bun.Glob("token_*").scanSync(out)];
      const id = file?.slice("token_".length) ?? "";
      expect(id).toMatch(/^[a-z0-9]{6}$/);
      const text = await Bun.file(join(out, `token_${id}`)).text();
      const config = parse(new TextDecoder().decode(Bun.gunzipSync(Buffer.from(text, "base64")))) as KubeConfig;
      expect(config.clusters[0]?.cluster.server).toBe("https://10.0.0.1:6443");
      expect(atob(config.clusters[0]?.cluster["certificate-authority-data"] ?? "").trim()).toBe(authority.cert.trim());
      expect(config.users[0]?.name).toBe(user);
      expect(config.users[0]?.user.token).toMatch(new RegExp(`^${id}\\.[a-z0-9]{16}$`));
      const secret = parse(await Bun.file(join(out, `bootstrap-token-${id}.yaml`)).text()) as { readonly kind: string };
      expect(secret.kind).toBe("Secret");
    }
  });
});

interface KubeConfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<"server" | "certificate-authority-data", string>> }[];
  readonly users: readonly { readonly name: string; readonly user: { readonly token: string } }[];
}

describe("start and stop without a service", () => {
  testNeeding(realNeeds("root", "systemd"), "say that none is installed", async () => {
    for (const verb of ["start", "stop"]) {
      const ran = await k0s.run([verb]);
      expect(ran.exitCode).toBe(1);
      expect(ran.stderr).toContain("k0s has not been installed as a service");
    }
  });
});

test("tests of a real k0s are asked for by K0S", () => {
  expect(isReal).toBe(process.env["K0S"] !== undefined);
});
