import { expect, test } from "bun:test";

import { Secret } from "../kit/secret.ts";
import { realExec } from "./exec.ts";

const exec = realExec();

test("success, failure, a signal and a missing program have one shape", async () => {
  const fine = await exec({ argv: ["sh", "-c", "echo out; echo err >&2"] });
  expect(fine).toMatchObject({ exitCode: 0, signal: null, stdout: "out\n", stderr: "err\n", timedOut: false });
  expect(await exec({ argv: ["sh", "-c", "exit 3"] })).toMatchObject({ exitCode: 3 });
  expect(await exec({ argv: ["sh", "-c", "kill -9 $$"] })).toMatchObject({ exitCode: null, signal: "SIGKILL" });
  expect(await exec({ argv: ["/no/such/program"] })).toMatchObject({ exitCode: null, failure: "not-found" });
  expect(await exec({ argv: ["/etc/passwd"] })).toMatchObject({ exitCode: null, failure: "not-executable" });
});

test("the environment is ours alone: C locale, nothing inherited", async () => {
  process.env["CORIUM_TEST_LEAK"] = "1";
  const { stdout } = await exec({ argv: ["env"], env: { EXTRA: "2" } });
  delete process.env["CORIUM_TEST_LEAK"];
  expect(stdout).toContain("LC_ALL=C\n");
  expect(stdout).toContain("EXTRA=2\n");
  expect(stdout).not.toContain("CORIUM_TEST_LEAK");
});

test("a secret reaches the program on stdin", async () => {
  expect((await exec({ argv: ["cat"], stdin: new Secret("f", "s3cret") })).stdout).toBe("s3cret");
});

test("B158: 10 MB on stderr neither hangs nor fills memory", async () => {
  const result = await exec({
    argv: ["sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x >&2; echo end"],
    maxOutputBytes: 1000,
  });
  expect(result).toMatchObject({ exitCode: 0, stdout: "end\n", truncated: true });
  expect(result.stderr.length).toBe(1000);
});

test("B157: a timeout takes the grandchildren along, even those that ignore TERM", async () => {
  const script = "trap '' TERM; sh -c \"trap '' TERM; echo \\$\\$; while :; do sleep 0.1; done\" & wait; wait";
  const result = await exec({ argv: ["sh", "-c", script], timeoutMs: 300 });
  expect(result.timedOut).toBe(true);
  expect(result.durationMs).toBeLessThan(6000);
  const grandchild = Number(result.stdout.trim());
  expect(grandchild).toBeGreaterThan(1);
  await Bun.sleep(100);
  const state = await Bun.file(`/proc/${grandchild}/stat`)
    .text()
    .catch(() => "gone ) Z");
  expect(state.split(") ")[1]?.[0]).toBe("Z");
}, 15_000);

test("a daemon left behind with our pipes does not hold the answer back", async () => {
  const started = performance.now();
  const result = await exec({ argv: ["sh", "-c", "sleep 20 & echo $!"] });
  expect(result).toMatchObject({ exitCode: 0 });
  expect(performance.now() - started).toBeLessThan(5000);
  process.kill(Number(result.stdout));
}, 15_000);

test("a program that not even KILL ends, because it waits for a dead disk, does not hold the answer back", async () => {
  const deaf = realExec({ kill: () => undefined });
  const result = await deaf({ argv: ["sh", "-c", "echo $$; exec sleep 60"], timeoutMs: 300 });
  expect(result).toMatchObject({ exitCode: null, signal: null, timedOut: true });
  process.kill(Number(result.stdout), "SIGKILL");
}, 30_000);
