/** The compiled program, as it lies on a node and on an operator's machine. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../iso/compile.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const folder = mkdtempSync(join(tmpdir(), "corium-binary-"));
const corium = join(folder, "corium");

beforeAll(() => {
  compile(join(import.meta.dir, "../main.ts"), corium, "1.2.3");
  symlinkSync("corium", join(folder, "cctl"));
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function run(
  argv: readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string>; readonly stdin?: string } = {},
): Promise<{ status: number; out: string; err: string }> {
  const child = Bun.spawn([...argv], {
    cwd: options.cwd ?? folder,
    env: { PATH: "/usr/bin:/bin", HOME: folder, ...options.env },
    stdin: new TextEncoder().encode(options.stdin ?? ""),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { status, out, err };
}

describe("the binary", () => {
  test("its name or the first argument picks the entry point", async () => {
    expect(await run([corium, "version"])).toEqual({ status: 0, out: "corium 1.2.3\n", err: "" });
    expect((await run([corium, "version", "--output", "json"])).out).toBe('{"version":"1.2.3"}\n');
    expect(await run([join(folder, "cctl"), "version"])).toEqual({ status: 0, out: "cctl 1.2.3\n", err: "" });
    expect((await run([corium, "cctl", "version"])).out).toBe("cctl 1.2.3\n");
  });

  test.each([[[]], [["frobnicate"]], [["__proto__"]], [["constructor"]], [["version", "x"]]])(
    "%j is wrong usage, said on stderr",
    async (argv) => {
      const ran = await run([corium, ...argv]);
      expect(ran.status).toBe(2);
      expect(ran.out).toBe("");
      expect(ran.err).toContain("usage: corium ");
    },
  );

  test("help lists the commands", async () => {
    const ran = await run([corium, "--help"]);
    expect(ran.status).toBe(0);
    for (const name of ["validate", "render", "diff", "version"]) expect(ran.out).toContain(name);
  });

  test("a document on stdin is validated; a long answer into a pipe is whole", async () => {
    expect((await run([corium, "validate", "-"], { stdin: "role: single\n" })).status).toBe(0);
    expect((await run([corium, "validate", "-"], { stdin: "role: singel\n" })).status).toBe(1);
    // A pipe holds 64 KiB: a reader that is always ahead would hide that the rest is lost.
    const schema = await run(["bash", "-o", "pipefail", "-c", `'${corium}' schema | (sleep 1; cat)`]);
    expect(schema.status).toBe(0);
    expect(schema.out.length).toBeGreaterThan(70_000);
    expect(JSON.parse(schema.out)).toHaveProperty("$schema");
  });

  test("an answer that could not be written was a success", async () => {
    const ran = await run(["bash", "-c", `'${corium}' schema >/dev/full`]);
    expect(ran.status).toBe(1);
    expect(ran.err).toContain("the output could not be written: ENOSPC");
  });

  test("a reader that goes away is no failure", async () => {
    const ran = await run(["bash", "-o", "pipefail", "-c", `'${corium}' schema | head -c 10`]);
    expect(ran.err).toBe("");
    expect(ran.out).toHaveLength(10);
  });

  test("files planted in its working directory run nothing", async () => {
    const trap = join(folder, "trap");
    mkdirSync(trap);
    const proof = join(trap, "proof");
    writeFileSync(join(trap, "evil.ts"), `import { writeFileSync } from "node:fs";\nwriteFileSync("${proof}", "");\n`);
    writeFileSync(join(trap, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
    writeFileSync(join(trap, ".env"), "HOME=/planted\nCORIUM_DIR=/planted\n");
    writeFileSync(join(trap, "package.json"), '{"name": "corium", "version": "6.6.6"}\n');
    writeFileSync(join(trap, "tsconfig.json"), "{");
    for (const argv of [
      [corium, "version"],
      [corium, "validate", "-"],
    ])
      await run(argv, { cwd: trap });
    expect(await Bun.file(proof).exists()).toBe(false);
    expect((await run([corium, "version"], { cwd: trap })).out).toBe("corium 1.2.3\n");
    const shown = await run([join(folder, "cctl"), "pki", "show", "-o", "json"], { cwd: trap });
    expect(JSON.parse(shown.out)).toMatchObject({ store: `${folder}/.corium` });
  });

  test("the store of a colleague is theirs: keys 0600 in a folder of 0700 on a real disk", async () => {
    const home = join(folder, "home");
    const init = await run([join(folder, "cctl"), "pki", "init"], { env: { HOME: home } });
    expect(init.err).toBe("");
    const mode = async (name: string): Promise<string> => {
      const ran = await run(["stat", "-c", "%a", join(home, ".corium", name)]);
      return ran.out.trim();
    };
    expect(await mode("")).toBe("700");
    expect([await mode("operator-ca.key"), await mode("client.key")]).toEqual(["600", "600"]);
    chmodSync(join(home, ".corium/client.key"), 0o644);
    const shown = await run([join(folder, "cctl"), "pki", "issue"], { env: { HOME: home } });
    expect(shown.status).toBe(0);
    expect(await mode("client.key")).toBe("600");
  });
});
