/** A node under test, seen from outside: its console and its API through cctl. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeAnswer } from "../../../api/contract.ts";
import type { Vm } from "./vm.ts";

const repository = join(import.meta.dir, "../../..");
export const cctlPath = join(repository, "out/cctl");

/** docs/cctl.md: the node could not be reached. */
const EXIT_UNREACHABLE = 3;

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** An operator with a store of their own. */
export interface Operator {
  readonly directory: string;
  /** No question is asked: `--yes` where one would be. */
  cctl(argv: readonly string[], timeoutMs?: number, stdin?: string): Promise<Ran>;
  /** As `cctl`, but a failure throws. */
  must(argv: readonly string[], timeoutMs?: number): Promise<string>;
  /**
   * Claims the node with code and fingerprint read from its console, with a document when one is given; afterwards it
   * is known as `name`.
   */
  enroll(vm: Vm, name: string, timeoutMs: number, document?: string): Promise<void>;
  status(name: string): Promise<NodeAnswer | undefined>;
  /** Until the node says it is in service; fails as soon as the bootstrap has failed. */
  waitInService(name: string, timeoutMs: number): Promise<NodeAnswer>;
  /** As Prometheus would read it, with the operator's certificate. */
  metrics(vm: Vm): Promise<string>;
  dispose(): void;
}

export async function openOperator(): Promise<Operator> {
  if (!existsSync(cctlPath)) throw new Error("out/cctl is not there: bun iso/compile.ts");
  const directory = mkdtempSync(join(tmpdir(), "corium-operator-"));
  const cctl: Operator["cctl"] = async (argv, timeoutMs = 60_000, stdin) => {
    const child = Bun.spawn([cctlPath, ...argv], {
      cwd: directory,
      env: { PATH: process.env["PATH"] ?? "", HOME: directory, CORIUM_DIR: join(directory, "store"), NO_COLOR: "1" },
      stdin: stdin === undefined ? "ignore" : Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
      timeout: timeoutMs,
    });
    const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { exitCode, stdout, stderr };
  };
  const must: Operator["must"] = async (argv, timeoutMs) => {
    const ran = await cctl(argv, timeoutMs);
    if (ran.exitCode !== 0) throw new Error(`cctl ${argv.join(" ")}: exit ${ran.exitCode}\n${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  };
  const status: Operator["status"] = async (name) => {
    const ran = await cctl(["status", name, "--output", "json"], 20_000);
    return ran.exitCode === 0 ? (JSON.parse(ran.stdout) as NodeAnswer) : undefined;
  };
  await must(["pki", "init", "--name", "tester"]);
  return {
    directory,
    cctl,
    must,
    status,
    enroll: async (vm, name, timeoutMs, document) => {
      const deadline = performance.now() + timeoutMs;
      // Code and fingerprint are shown earlier; this line comes once the machine has an address.
      const line =
        /claim with: cctl enroll \S+ --code ([0-9A-Z]{4}-[0-9A-Z]{4}) --fingerprint (SHA256:[A-Za-z0-9+/]{43})/;
      const [, code = "", fingerprint = ""] = await vm.console.expect(line, timeoutMs);
      const address = `127.0.0.1:${vm.port(7443)}`;
      const argv = ["enroll", address, "--code", code, "--fingerprint", fingerprint, "--name", name, "--yes"];
      if (document !== undefined) {
        writeFileSync(join(directory, `${name}.yaml`), document);
        argv.push("--config", `${name}.yaml`);
      }
      for (;;) {
        const ran = await cctl(argv, 120_000);
        if (ran.exitCode === 0) return;
        // An emulated machine beside another one may take longer to answer than cctl waits.
        if (ran.exitCode !== EXIT_UNREACHABLE || performance.now() > deadline)
          throw new Error(`cctl ${argv.join(" ")}: exit ${ran.exitCode}\n${ran.stdout}${ran.stderr}`);
        await Bun.sleep(1000);
      }
    },
    waitInService: async (name, timeoutMs) => {
      const deadline = performance.now() + timeoutMs;
      let last: NodeAnswer | undefined;
      for (;;) {
        const node = await status(name);
        if (node?.bootstrapped === true && node.phase === "in-service") return node;
        last = node ?? last;
        if (performance.now() > deadline)
          throw new Error(`${name} is not in service after ${timeoutMs / 1000} s: ${JSON.stringify(last)}`);
        await Bun.sleep(1000);
      }
    },
    metrics: async (vm) => {
      const [cert, key] = ["client.crt", "client.key"].map((file) =>
        readFileSync(join(directory, "store", file), "utf8"),
      );
      // Nodes are known by their fingerprint, which is cctl's business.
      const tls = { cert, key, rejectUnauthorized: false };
      const answer = await fetch(`https://127.0.0.1:${vm.port(7443)}/metrics`, { tls });
      if (!answer.ok) throw new Error(`/metrics: status ${answer.status}`);
      return answer.text();
    },
    dispose: () => {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
