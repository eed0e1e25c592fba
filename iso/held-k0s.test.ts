/** k0s is held back by what it can't do without: addresses that the node was bootstrapped with, overlays. The units and their waits. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

setDefaultTimeout(120_000);

const folder = mkdtempSync(join(tmpdir(), "held-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A folder with an `ip` that prints this file. */
function ipSaying(name: string, text: string): { readonly bin: string; readonly answer: string } {
  const bin = join(folder, name);
  mkdirSync(bin);
  const answer = join(bin, "answer");
  writeFileSync(answer, text);
  writeFileSync(join(bin, "ip"), `#!/bin/sh\ncat ${answer}\n`, { mode: 0o755 });
  return { bin, answer };
}

const run = (script: string, argument: string, bin: string, env: Readonly<Record<string, string>> = {}) =>
  Bun.spawn(["sh", join(import.meta.dir, script), argument], {
    env: { PATH: `${bin}:/usr/bin:/bin`, CORIUM_POLL: "0.1", CORIUM_PATIENCE: "0", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
const waitAddress = "rootfs/usr/lib/corium/wait-address";
const waitOverlay = "rootfs-storage/usr/lib/corium/wait-overlay";
const has = (flags = ""): string => `2: eth0    inet 192.0.2.2/24 scope global${flags} eth0\n`;

describe("an address that the node was bootstrapped with", () => {
  test("there at once: nothing is said, k0s starts", async () => {
    const { bin } = ipSaying("there", has());
    const ran = run(waitAddress, "192.0.2.2", bin);
    expect(await ran.exited).toBe(0);
    expect(await new Response(ran.stdout).text()).toBe("");
  });

  test("B181: gone: k0s is held back with a message for as long as it takes, and starts when it is there again", async () => {
    const { bin, answer } = ipSaying("gone", "");
    const ran = run(waitAddress, "192.0.2.2", bin);
    const decoder = new TextDecoder();
    let said = "";
    for await (const chunk of ran.stdout) {
      said += decoder.decode(chunk, { stream: true });
      if (!said.includes("\n")) continue;
      expect(ran.exitCode).toBeNull();
      writeFileSync(answer, has());
    }
    expect(await ran.exited).toBe(0);
    expect(said).toBe(
      "address 192.0.2.2 is on no interface: k0s is held back until it is, for this node was bootstrapped with it\n" +
        "address 192.0.2.2 is there again: k0s may start\n",
    );
  });

  test("an IPv6 address that another machine has too is not there", async () => {
    const { bin, answer } = ipSaying("twice", has(" dadfailed tentative"));
    const ran = run(waitAddress, "fd00::2", bin);
    await Bun.sleep(300);
    expect(ran.exitCode).toBeNull();
    writeFileSync(answer, has());
    expect(await ran.exited).toBe(0);
  });

  test("systemd waits as long, and asks anew at each start of k0s", () => {
    const unit = readFileSync(join(import.meta.dir, "rootfs/usr/lib/systemd/system/corium-address@.service"), "utf8");
    expect(unit).toContain("\nTimeoutStartSec=infinity\n");
    expect(unit).toContain("\nExecStart=/usr/lib/corium/wait-address %i\n");
    expect(unit).not.toContain("RemainAfterExit");
  });
});

describe("an overlay", () => {
  const root = join(folder, "root");
  mkdirSync(join(root, "etc/systemd/network"), { recursive: true });
  writeFileSync(
    join(root, "etc/systemd/network/50-corium-wg0.network"),
    "[Match]\nName=wg0\n[Network]\nAddress=10.9.0.1/24\nAddress=fd09::1/64\n",
  );
  const both = "5: wg0    inet 10.9.0.1/24 scope global wg0\n5: wg0    inet6 fd09::1/64 scope global \n";

  test("B037: with all its addresses k0s starts, although no peer ever answered and no name resolves", async () => {
    const { bin } = ipSaying("overlay", both);
    expect(await run(waitOverlay, "wg0", bin, { CORIUM_ROOT: root }).exited).toBe(0);
  });

  test("without the interface k0s is not started: the wait ends, and says what is missing", async () => {
    const { bin } = ipSaying("no-overlay", both.split("\n")[0] ?? "");
    const ran = run(waitOverlay, "wg0", bin, { CORIUM_ROOT: root, CORIUM_WAIT: "1" });
    expect(await ran.exited).toBe(1);
    expect(await new Response(ran.stdout).text()).toContain(
      "overlay wg0 has 1 of 2 addresses after 1 s: k0s is held back",
    );
  });

  test("systemd gives the wait its time", () => {
    const unit = readFileSync(
      join(import.meta.dir, "rootfs-storage/usr/lib/systemd/system/corium-overlay@.service"),
      "utf8",
    );
    const [limit] = /CORIUM_WAIT:-(\d+)/.exec(readFileSync(join(import.meta.dir, waitOverlay), "utf8"))?.slice(1) ?? [];
    const [timeout] = /^TimeoutStartSec=(\d+)$/m.exec(unit)?.slice(1) ?? [];
    expect(Number(timeout)).toBeGreaterThan(Number(limit));
    expect(unit).not.toContain("RemainAfterExit");
  });
});
