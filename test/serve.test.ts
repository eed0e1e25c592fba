/** `corium serve` as a unit starts it: the compiled binary, its environment, its signals, its exits. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";

import { nodePaths } from "../kit/paths.ts";
import { temporaryName } from "../kit/temporary.ts";
import { openState } from "../state/open.ts";
import { type Daemon, daemonProgram, putInService } from "./support/daemon.ts";
import { sha256Of } from "../kit/sha256.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const program = daemonProgram();
const { folder, corium, newStateDir, start, stop } = program;
beforeAll(() => program.build(), 120_000);
afterAll(() => program.dispose());

describe("the environment", () => {
  test.each([
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NODE_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
    "SSLKEYLOGFILE",
    "BUN_CONFIG_VERBOSE_FETCH",
  ])("with %s it refuses to start, and makes nothing", async (name) => {
    const daemon = await start(undefined, { [name]: "" });
    expect(await daemon.child.exited).toBe(1);
    expect(daemon.said()).toContain(name);
    expect(existsSync(daemon.stateDir)).toBe(false);
  });

  test("what lies in its folder is not obeyed", async () => {
    const cwd = join(folder, "planted");
    mkdirSync(cwd);
    writeFileSync(join(cwd, ".env"), "NODE_TLS_REJECT_UNAUTHORIZED=0\n");
    writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
    writeFileSync(join(cwd, "evil.ts"), `require("node:fs").writeFileSync("${cwd}/ran", "");\n`);
    const daemon = await start(undefined, {}, cwd);
    expect(daemon.port).toBeGreaterThan(0);
    expect(existsSync(join(cwd, "ran"))).toBe(false);
    expect(await stop(daemon)).toBe(0);
  });
});

describe("its life", () => {
  test("SIGTERM ends it with 0 at once, with connections open", async () => {
    const daemon = await start();
    const idle = connectTcp(daemon.port, "127.0.0.1");
    idle.on("error", () => {});
    await new Promise((resolve) => idle.once("connect", resolve));
    const started = performance.now();
    expect(await stop(daemon)).toBe(0);
    expect(performance.now() - started).toBeLessThan(3_000);
  });

  test("B141: killed and started again it has the same code and the same fingerprint", async () => {
    const first = await start();
    const { code, fingerprint } = first.enrolment();
    expect(fingerprint).toBe(first.fingerprint);
    await stop(first, "SIGKILL");
    const second = await start(first.stateDir);
    expect(second.fingerprint).toBe(first.fingerprint);
    expect(second.enrolment().code).toBe(code ?? "");
    await stop(second);
  });

  test("killed between writing a document and recording it: the next start shows what is in the file", async () => {
    const first = await start();
    await stop(first, "SIGKILL");
    const half = join(first.stateDir, temporaryName("config.yaml", first.child.pid, 1));
    writeFileSync(half, "role: sin");
    writeFileSync(join(first.stateDir, "config.yaml"), "role: single\nnode: {name: sent}\n");
    const second = await start(first.stateDir);
    expect(existsSync(half)).toBe(false);
    const { status, body } = await second.get("/v1/config");
    expect(status).toBe(200);
    expect(body["document"]).toBe("role: single\nnode: {name: sent}\n");
    await stop(second);
  });

  test("a second one on the same port says why it can't", async () => {
    const first = await start();
    const child = Bun.spawn(
      [corium, "serve", "--state-dir", newStateDir(), "--address", "127.0.0.1", "--port", String(first.port)],
      {
        env: { PATH: process.env["PATH"] ?? "", TMPDIR: folder },
        stderr: "pipe",
        stdout: "ignore",
      },
    );
    expect(await child.exited).toBe(1);
    expect(await child.stderr.text()).toContain(`port ${first.port} is in use`);
    await stop(first);
  });
});

describe("what the document says", () => {
  const withDocument = (text: string): string => {
    const stateDir = newStateDir();
    mkdirSync(stateDir);
    writeFileSync(join(stateDir, "config.yaml"), text);
    return stateDir;
  };

  test("the API turned off: exit 78, no port, no key", async () => {
    const daemon = await start(withDocument("role: single\napi: {enabled: false}\n"));
    expect(await daemon.child.exited).toBe(78);
    expect(existsSync(join(daemon.stateDir, "api"))).toBe(false);
  });

  test("insecure: no code is shown", async () => {
    const daemon = await start(withDocument("role: single\napi: {enabled: true, insecure: true}\n"));
    while (daemon.enrolment().code !== undefined) await Bun.sleep(20);
    expect(daemon.enrolment().fingerprint).toBe(daemon.fingerprint);
    await stop(daemon);
  });
});

test("in the middle of a reset nobody can claim the node, though nobody owns it", async () => {
  for (const name of ["reset.json", "reset-erasing"]) {
    const stateDir = newStateDir();
    mkdirSync(stateDir);
    writeFileSync(join(stateDir, name), "");
    const daemon = await start(stateDir);
    expect([name, existsSync(join(stateDir, "run/enrolment.json"))]).toEqual([name, false]);
    const claim = { method: "POST", body: "{}", tls: { rejectUnauthorized: false } };
    expect((await fetch(`https://127.0.0.1:${daemon.port}/v1/enroll`, claim)).status).toBe(409);
    expect(await stop(daemon)).toBe(0);
  }
});

describe("a node in service", () => {
  /** As its bootstrap left it, with one rendered file. */
  const inService = (): { readonly stateDir: string; readonly rendered: string } => {
    const stateDir = newStateDir();
    const rendered = join(stateDir, "etc/k0s.yaml");
    mkdirSync(join(stateDir, "etc"), { recursive: true });
    writeFileSync(rendered, "spec: {}\n");
    putInService(stateDir, "role: single\n", { rendered: { [rendered]: sha256Of("spec: {}\n") } });
    return { stateDir, rendered };
  };
  /** Until it is told: the look every five minutes, which would find it too, is further away than the test's end. */
  const event = async (daemon: Daemon, kind: string, path: string): Promise<string> => {
    for (;;) {
      const answer = await fetch("http://localhost/v1/events", { unix: join(daemon.stateDir, "run/api.sock") });
      const found = (await answer.text()).split("\n").filter((line) => line.includes(kind) && line.includes(path));
      if (found[0] !== undefined) return found[0];
      await Bun.sleep(100);
    }
  };

  test("what is edited by hand is told soon by its watch, and nothing is done about it", async () => {
    const { stateDir, rendered } = inService();
    const daemon = await start(stateDir);
    const config = join(stateDir, "config.yaml");
    writeFileSync(config, "role: single\nupgrades: { automatic: download }\n");
    await event(daemon, "config-pending", config);
    writeFileSync(config, "role: single\n");
    await event(daemon, "config-in-sync", "");
    writeFileSync(`${rendered}.new`, "spec: { mine: true }\n");
    renameSync(`${rendered}.new`, rendered);
    await event(daemon, "config-drifted", rendered);
    const { body } = await daemon.get("/v1/config/status");
    expect(body).toMatchObject({ state: "drifted", reasons: [{ code: "file-changed", path: rendered }] });
    expect(readFileSync(rendered, "utf8")).toBe("spec: { mine: true }\n");
    await stop(daemon);
  });
});

describe("a database that can't be used", () => {
  test("a marker without its database: degraded, nothing is claimed, nothing is made", async () => {
    const stateDir = newStateDir();
    mkdirSync(stateDir);
    writeFileSync(join(stateDir, "bootstrapped"), "");
    const daemon = await start(stateDir);
    expect((await daemon.get("/v1/health")).body).toMatchObject({ status: "degraded" });
    expect(await daemon.get("/v1/operations")).toMatchObject({ status: 503, body: { reason: "state-lost" } });
    expect(existsSync(join(stateDir, "run/enrolment.json"))).toBe(false);
    expect(existsSync(join(stateDir, "corium.db"))).toBe(false);
    const answer = await fetch(`https://127.0.0.1:${daemon.port}/v1/enroll`, {
      method: "POST",
      body: "{}",
      tls: { rejectUnauthorized: false },
    });
    expect(answer.status).toBe(503);
    expect(await stop(daemon)).toBe(0);
  });

  test("one that does not say what the node runs: its files are compared with the document that is named", async () => {
    const stateDir = newStateDir();
    mkdirSync(stateDir);
    const paths = { ...nodePaths(stateDir), config: join(stateDir, "config.yaml") };
    const opened = openState(paths);
    if (!opened.ok) throw new Error(opened.error.message);
    opened.value.close();
    writeFileSync(paths.marker, "");
    const daemon = await start(stateDir);
    expect(await daemon.get("/v1/operations")).toMatchObject({ status: 503, body: { reason: "no-baseline" } });
    expect(existsSync(join(stateDir, "run/enrolment.json"))).toBe(false);
    const adopt = async (document: string): Promise<{ readonly status: number; readonly reason?: unknown }> => {
      const answer = await fetch("http://localhost/v1/baseline?dryRun=true", {
        unix: join(stateDir, "run/api.sock"),
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ document }),
      });
      return { status: answer.status, reason: ((await answer.json()) as Record<string, unknown>)["reason"] };
    };
    expect(await adopt("rolle: single\n")).toEqual({ status: 400, reason: "invalid-document" });
    // This machine is no node: there is no k0s that could be asked.
    expect(await adopt("role: single\n")).toMatchObject({ status: 503 });
    expect(await stop(daemon)).toBe(0);
  });

  test("an operation that a killed program left running is closed by the next start", async () => {
    const stateDir = newStateDir();
    const script = `
      import { openState } from "${join(import.meta.dir, "../state/open.ts")}";
      const state = openState(${JSON.stringify(nodePaths(stateDir))}).value;
      const begun = state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
      console.log(begun.value.id);
      process.kill(process.pid, "SIGKILL");`;
    const child = Bun.spawn(["bun", "-e", script], { stdout: "pipe", stderr: "inherit" });
    const id = (await child.stdout.text()).trim();
    const daemon = await start(stateDir);
    const { body } = await daemon.get(`/v1/operations/${id}`);
    expect(body["phase"]).toBe("failed");
    expect(body["failureReason"]).toContain("stopped in the middle");
    await stop(daemon);
  });
});
