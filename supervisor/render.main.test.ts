import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command, CommandIo } from "../kit/command.ts";
import { diffCommand } from "./diff.main.ts";
import { renderCommand } from "./render.main.ts";

const folder = mkdtempSync(join(tmpdir(), "corium-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function run(command: Command, argv: readonly string[], stdin = "") {
  const said = { out: "", err: "" };
  const io: CommandIo = {
    out: (text) => void (said.out += text),
    err: (text) => void (said.err += text),
    readStdin: async () => stdin,
    env: {},
    isTerminal: false,
    columns: 80,
    signal: new AbortController().signal,
  };
  return { exit: await command(argv, io), ...said };
}

const HA = `role: controller
cluster: {endpoint: 192.0.2.100}
ha: {enabled: true, virtualIP: 192.0.2.100/24, authPass: hunter22}
`;

describe("corium render", () => {
  test("text: each file with its mode, the commands, the units", async () => {
    const { exit, out } = await run(renderCommand, ["--hostname", "c1", "--address", "192.0.2.7", file("ha.yaml", HA)]);
    expect(exit).toBe(0);
    expect(out).toContain("==> /etc/k0s/k0s.yaml (0600)\n");
    expect(out).toContain("==> /etc/hostname (0644)\nc1\n");
    expect(out).toContain(
      "/usr/bin/k0s install controller --config /etc/k0s/k0s.yaml --kubelet-extra-args --node-ip=192.0.2.7\n",
    );
    expect(out).toContain("==> units\nk0scontroller.service\n");
    expect(out).not.toContain("hunter22");
  });

  test("a document from stdin; the machine id names a node without a name", async () => {
    const { exit, out } = await run(
      renderCommand,
      ["--machine-id", "abcdef0123456789abcdef0123456789", "--output", "json", "-"],
      "role: single\n",
    );
    expect(exit).toBe(0);
    const { files } = JSON.parse(out) as { files: Record<string, { mode: string; content: string }> };
    expect(files["/etc/hostname"]).toEqual({ mode: "0644", content: "corium-abcdef01\n" });
  });

  test("a refused document: exit 1, its problems on stderr, nothing on stdout", async () => {
    const { exit, out, err } = await run(renderCommand, [file("bad.yaml", "role: bos\n")]);
    expect([exit, out]).toEqual([1, ""]);
    expect(err).toContain("bad.yaml:1:");
  });

  test("usage: no file, two files, an unknown flag or format", async () => {
    for (const argv of [[], ["a", "b"], ["--nope", "a"], ["--output", "xml", "a"]]) {
      const { exit, err } = await run(renderCommand, argv);
      expect(exit).toBe(2);
      expect(err).toMatch(/^corium: .+\nusage: corium render /);
    }
    expect(await run(renderCommand, [join(folder, "absent.yaml")])).toMatchObject({
      exit: 1,
      err: expect.stringContaining("absent.yaml: error: there is no such file"),
    });
  });

  test("an option's value that no node can have was rendered", async () => {
    const good = file("good.yaml", "role: single\n");
    for (const [name, value] of [
      ["--address", "999.1.1.1"],
      ["--hostname", "A b"],
      ["--machine-id", "xx"],
    ] as const) {
      const { exit, out, err } = await run(renderCommand, [name, value, good]);
      expect({ name, exit, out }).toEqual({ name, exit: 2, out: "" });
      expect(err).toContain(`corium: ${name}: "${value}" is no `);
    }
  });

  test("what k0s would drop silently is said", async () => {
    const path = file("typo.yaml", "role: single\nk0s: {patch: {spec: {api: {extrnalAddress: a.example.net}}}}\n");
    const { err } = await run(renderCommand, [path]);
    expect(err).toContain("typo.yaml:2:28: warning: k0s.patch.spec.api.extrnalAddress: ");
    expect(err.match(/did you mean externalAddress\?/g)).toHaveLength(1);
  });
});

describe("corium diff", () => {
  const base = file("base.yaml", "role: controller\n");
  const patched = file("patched.yaml", "role: controller\nk0s: {patch: {spec: {storage: {type: kine}}}}\n");

  test("a patch that has to be owned: refused, and accepted with --own-patch", async () => {
    const no = await run(diffCommand, ["--output", "json", base, patched]);
    expect(no.exit).toBe(1);
    expect(JSON.parse(no.out)).toMatchObject({ result: "refused", reason: "patch-overrides", restarts: [] });
    const yes = await run(diffCommand, ["--output", "json", "--own-patch", base, patched]);
    expect(yes.exit).toBe(5);
    expect(JSON.parse(yes.out)).toMatchObject({ result: "reconcilable", restarts: ["k0scontroller"] });
  });

  test("text names field, class, both values and what restarts; never a secret", async () => {
    const ha = file("ha1.yaml", HA);
    const other = file("ha2.yaml", HA.replace("hunter22", "swordfis"));
    const { exit, out } = await run(diffCommand, [ha, other]);
    expect(exit).toBe(1);
    expect(out).toMatch(/^refused\n {2}immutable: ha\.authPass: "hmac-sha256:[0-9a-f]+" -> "hmac-sha256:[0-9a-f]+"\n$/);
    expect((await run(diffCommand, ["--own-patch", base, patched])).out).toContain("restarts: k0scontroller");
  });

  test("an invalid proposal: exit 1 with its problems", async () => {
    const { exit, err } = await run(diffCommand, [base, file("worse.yaml", "role: controller\nnode: {nam: a}\n")]);
    expect(exit).toBe(1);
    expect(err).toContain("node.nam");
    const json = await run(diffCommand, ["--output", "json", base, join(folder, "worse.yaml")]);
    expect(json.exit).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({
      result: "refused",
      reason: "invalid",
      fields: [],
      problems: [{ file: join(folder, "worse.yaml"), code: "unknown-key", path: "node.nam", line: 2, column: 8 }],
    });
  });

  test("usage", async () => {
    for (const argv of [[], [base], [base, base, base], ["-", "-"]])
      expect((await run(diffCommand, argv)).exit).toBe(2);
  });
});

test("a device file without an end filled the memory", async () => {
  const { exit, err } = await run(renderCommand, ["/dev/zero"]);
  expect([exit, err]).toEqual([1, expect.stringContaining("more than 1 MiB")]);
  expect(await run(diffCommand, ["--help"])).toMatchObject({ exit: 0, err: "" });
});
