/** `corium serve` as a unit starts it: the compiled binary, its environment, its signals, its exits. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

import { RENDER_VERSION } from "../apply/render-version.ts";
import { compile } from "../iso/compile.ts";
import { nodePaths } from "../kit/paths.ts";
import { temporaryName } from "../kit/temporary.ts";
import { sha256Of } from "../state/documents.ts";
import { openState } from "../state/open.ts";
import { recordBaseline } from "./support/in-service.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const folder = mkdtempSync(join(tmpdir(), "corium-serve-"));
const corium = join(folder, "corium");
const running = new Set<Bun.Subprocess>();
let count = 0;

beforeAll(() => compile(join(import.meta.dir, "../main.ts"), corium, "1.2.3"), 120_000);
afterAll(async () => {
  for (const child of running) {
    child.kill("SIGKILL");
    await child.exited;
  }
  rmSync(folder, { recursive: true, force: true });
});

interface Daemon {
  readonly stateDir: string;
  readonly child: Bun.Subprocess<"ignore", "ignore", "pipe">;
  readonly port: number;
  readonly fingerprint: string;
  readonly said: () => string;
  get(path: string): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>;
  enrolment(): { readonly code?: string; readonly fingerprint?: string };
}

const newStateDir = (): string => join(folder, `state-${(count += 1)}`);

/** Until it listens, or until it ends. */
async function start(stateDir = newStateDir(), env: Record<string, string> = {}, cwd = folder): Promise<Daemon> {
  const child = Bun.spawn([corium, "serve", "--state-dir", stateDir, "--address", "127.0.0.1", "--port", "0"], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", TMPDIR: folder, ...env },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  running.add(child);
  let said = "";
  let settle = (): void => {};
  const listening = new Promise<void>((resolve) => {
    settle = resolve;
  });
  void (async () => {
    for await (const chunk of child.stderr) {
      said += new TextDecoder().decode(chunk);
      if (said.includes("listening on port")) settle();
    }
    settle();
  })();
  await listening;
  const found = /listening on port (\d+), fingerprint (\S+)/.exec(said);
  return {
    stateDir,
    child,
    port: Number(found?.[1] ?? 0),
    fingerprint: found?.[2] ?? "",
    said: () => said,
    async get(path) {
      const answer = await fetch(`http://localhost${path}`, { unix: join(stateDir, "run/api.sock") });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    },
    enrolment: () => JSON.parse(readFileSync(join(stateDir, "run/enrolment.json"), "utf8")) as Record<string, string>,
  };
}

async function stop(daemon: Daemon, signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<number> {
  daemon.child.kill(signal);
  const status = await daemon.child.exited;
  running.delete(daemon.child);
  return status;
}

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
    mkdirSync(stateDir);
    const paths = { ...nodePaths(stateDir), config: join(stateDir, "config.yaml") };
    const rendered = join(stateDir, "etc/k0s.yaml");
    mkdirSync(join(stateDir, "etc"));
    writeFileSync(rendered, "spec: {}\n");
    writeFileSync(paths.config, "role: worker\n");
    const opened = openState(paths);
    if (!opened.ok) throw new Error(opened.error.message);
    const state = opened.value;
    recordBaseline(state, "role: worker\n", {
      hostname: hostname(),
      rendered: { [rendered]: sha256Of("spec: {}\n") },
      renderVersion: RENDER_VERSION,
    });
    state.meta.set("in-service-at-ms", "1");
    writeFileSync(paths.marker, "");
    state.close();
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
    writeFileSync(config, "role: worker\nupgrades: { automatic: download }\n");
    await event(daemon, "config-pending", config);
    writeFileSync(config, "role: worker\n");
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
