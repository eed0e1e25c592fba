import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command, CommandIo } from "../kit/command.ts";
import { explainCommand, schemaCommand, validateCommand } from "./offline.main.ts";

const folder = mkdtempSync(join(tmpdir(), "corium-offline-"));
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, text: string | Uint8Array): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

async function run(
  command: Command,
  argv: readonly string[],
  stdin = "",
): Promise<{ status: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const io: CommandIo = {
    out: (text) => (out += text),
    err: (text) => (err += text),
    readStdin: () => Promise.resolve(stdin),
    env: {},
    isTerminal: false,
    columns: 80,
    signal: new AbortController().signal,
  };
  return { status: await command(argv, io), out, err };
}

describe("corium validate", () => {
  const good = file("good.yaml", "role: single\ncluster: {name: harbour}\n");
  const bad = file("bad.yaml", "role: single\ncluster:\n  nmae: harbour\n");

  test("0 when all are valid, with role and cluster", async () => {
    const { status, out } = await run(validateCommand, [good]);
    expect(status).toBe(0);
    expect(out).toContain("valid: single of cluster harbour");
  });

  test("1 when one is not, with file:line:column, the path and the cure", async () => {
    const { status, out } = await run(validateCommand, [good, bad]);
    expect(status).toBe(1);
    expect(out).toContain(`${bad}:3:3: error: cluster.nmae: unknown key "nmae"\n  hint: did you mean "name"?`);
  });

  test("a file's name steered the terminal in the last line", async () => {
    const { out } = await run(validateCommand, [file("a\u001b[2J.yaml", "role: single\n")]);
    expect(out).toContain("a\\u001b[2J.yaml: valid");
  });

  test("JSON has an entry for each file", async () => {
    const { status, out } = await run(validateCommand, ["--output", "json", good, bad]);
    expect(status).toBe(1);
    expect(JSON.parse(out)).toEqual([
      { file: good, valid: true, role: "single", cluster: "harbour", problems: [] },
      {
        file: bad,
        valid: false,
        problems: [
          {
            severity: "error",
            code: "unknown-key",
            path: "cluster.nmae",
            line: 3,
            column: 3,
            message: 'unknown key "nmae"',
            hint: 'did you mean "name"?',
          },
        ],
      },
    ]);
  });

  test("warnings do not make it invalid", async () => {
    const warned = file("warned.yaml", "role: single\nbackup: {enabled: true, keep: 012}\n");
    expect(await run(validateCommand, ["--output=json", warned])).toMatchObject({ status: 0 });
  });

  test("standard input", async () => {
    expect((await run(validateCommand, ["-"], "role: worker\n")).out).toContain(
      "standard input:1:1: error: join.token",
    );
    expect((await run(validateCommand, ["-"], "role: single\n")).status).toBe(0);
  });

  test("a file that is not there, a folder, a huge file and no UTF-8 are not valid, and said", async () => {
    const huge = file("huge.yaml", new Uint8Array(3 * 1024 * 1024).fill(0x20));
    const utf16 = file("utf16.yaml", new Uint8Array([0xff, 0xfe, 0x72, 0x00]));
    const { status, out } = await run(validateCommand, [join(folder, "gone.yaml"), folder, huge, utf16]);
    expect(status).toBe(1);
    for (const part of ["there is no such file", "cannot be read", "more than 1 MiB", "UTF-8"])
      expect(out).toContain(part);
  });

  test.each([[[]], [["--output", "xml", good]], [["--frobnicate", good]], [["-", "-"]]])(
    "%j is wrong usage",
    async (argv) => {
      const { status, err, out } = await run(validateCommand, argv);
      expect(status).toBe(2);
      expect(err).toContain("usage: corium validate");
      expect(out).toBe("");
    },
  );
});

describe("corium explain and schema", () => {
  test("a field, with or without brackets", async () => {
    const { status, out } = await run(explainCommand, ["wireguard[wg0].peers[0].endpoint"]);
    expect(status).toBe(0);
    expect(out.split("\n")[0]).toBe("wireguard[].peers[].endpoint");
    expect(out).toContain("  in service  immutable:");
    expect(out).toContain('    endpoint: "[2001:db8::2]:51820"\n');
    expect((await run(explainCommand, ["backup.keep"])).out).toContain("  default     7\n");
    expect((await run(explainCommand, ["corium.ha.authPass"])).out).toContain("  secret      never shown");
  });

  test("a field that is not there names the nearest", async () => {
    const { status, err } = await run(explainCommand, ["network.podCidr"]);
    expect(status).toBe(1);
    expect(err).toContain("network.podCIDR");
    expect((await run(explainCommand, [])).status).toBe(2);
  });

  test("the schema is JSON Schema 2020-12 with descriptions", async () => {
    const { out } = await run(schemaCommand, []);
    const schema = JSON.parse(out);
    expect(schema.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
    expect(schema.$defs.document.properties.ha.properties.virtualRouterID).toMatchObject({ minimum: 1, maximum: 255 });
    expect(schema.$defs.document.additionalProperties).toBe(false);
  });
});

describe("odd arguments", () => {
  test("--help was an unknown option", async () => {
    for (const command of [validateCommand, explainCommand, schemaCommand]) {
      expect(await run(command, ["--help"])).toMatchObject({
        status: 0,
        out: expect.stringContaining("usage: corium"),
        err: "",
      });
    }
  });

  test("a folder, and a file without a name, are said in words", async () => {
    expect((await run(validateCommand, [folder])).out).toContain(
      `${folder}: error: it cannot be read: it is a folder\n`,
    );
    expect(await run(validateCommand, [""])).toMatchObject({ status: 2, out: "" });
  });

  test("a misspelt last name, or one that is near nothing, got no answer at all", async () => {
    expect((await run(explainCommand, ["endpont"])).err).toContain("did you mean wireguard[].peers[].endpoint?");
    expect((await run(explainCommand, ["zzzzzzzzzzzz"])).err).toContain("corium schema prints them all");
    expect((await run(explainCommand, ["a\u001b[2J"])).err).not.toContain("\u001b");
  });
});
