import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { type FakeHost, fakeHost } from "../test/support/fake-host.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import { commands } from "./cctl.main.ts";
import { globalFlags } from "./context.ts";

const cctl = (host: FakeHost, argv: readonly string[]): ReturnType<typeof runCctl> => runCctl(host, argv);

describe("usage", () => {
  test("a flag means the same everywhere, so that it may stand before the command", () => {
    const seen = new Map<string, string>();
    for (const { name, value, short } of [...globalFlags, ...commands.flatMap(({ flags }) => flags)]) {
      const shape = `${value === undefined ? "switch" : "value"} ${short ?? ""}`;
      expect(seen.get(name) ?? shape).toBe(shape);
      seen.set(name, shape);
    }
  });

  test.each([
    [[], 2, "usage: cctl COMMAND"],
    [["frobnicate"], 2, "cctl: no command 'frobnicate'"],
    [["disk"], 2, "cctl: disk needs replace\n  hint: cctl disk --help\n"],
    [["luks"], 2, "cctl: luks needs recovery or unlock\n"],
    [["luks", "open"], 2, "cctl: no command 'luks open'"],
    [["status"], 2, "cctl: status needs ADDR"],
    [["health", "a", "b"], 2, "cctl: health takes ADDR"],
    [["status", "a", "b", "--watch"], 2, "cctl: status --watch watches one node"],
    [["status", "a", "--role", "admin"], 2, "cctl: status has no flag --role"],
    [["--nope", "status", "a"], 2, "cctl: no such flag: --nope"],
    [["status", "a", "-o", "xml"], 2, "cctl: 'xml' is no output"],
    [["apply", "a"], 2, "cctl: apply needs either --file FILE or --previous"],
    [["operations", "a", "--follow"], 2, "cctl: --follow needs the ID"],
    [["logs", "a", "--unit", "k0scontroller", "--since", "yesterday"], 2, "cctl: 'yesterday' is no time"],
    [["status", "not an address"], 2, "cctl: 'not an address' is no address"],
    [["enroll", "a", "--fingerprint", "SHA256:x"], 1, "cctl: there is no operator CA in /home/ann/.corium"],
    [["status", "10.0.0.5"], 1, "cctl: 10.0.0.5:7443 was not enrolled from here"],
    [["\u001b[2J"], 2, "cctl: no command '\\x1b[2J'"],
  ] as const)("%j exits %i", async (argv, status, message) => {
    const ran = await cctl(fakeHost(), argv);
    expect(ran.err).toStartWith(message);
    expect(ran.out).toBe("");
    expect(ran.status).toBe(status);
  });

  test("the offline commands took neither the client's flags nor its name", async () => {
    const argv = ["--dir", "/x", "--output", "yaml", "schema", "-y"];
    const schema = await cctl(fakeHost(), argv);
    expect([schema.status, schema.err]).toEqual([0, ""]);
    expect(schema.out).toStartWith("$schema: ");
    const wrong = await cctl(fakeHost(), ["render"]);
    expect(wrong.err).toStartWith("cctl: render needs FILE | -\nusage: cctl render ");
    expect(wrong.status).toBe(2);
  });

  test("help is printed where it was asked for", async () => {
    const all = await cctl(fakeHost(), ["--help"]);
    expect(all.status).toBe(0);
    for (const { words } of commands) expect(all.out).toContain(`  ${words.join(" ")} `);
    const some = await cctl(fakeHost(), ["luks", "--help"]);
    expect(some.out).toMatch(
      /^usage: cctl COMMAND\n\n {2}luks recovery ADDR NAME .*\n {2}luks unlock ADDR NAME .*\n\n/,
    );
    const one = await cctl(fakeHost(), ["apply", "--help"]);
    expect(one.out).toStartWith("usage: cctl apply ADDR… [FLAG…]\n");
  });

  test("bash offered the second word of every command after pki, and after the others none", async () => {
    const ran = await cctl(fakeHost(), ["completion", "bash"]);
    expect(ran.out).toContain('        disk:2) COMPREPLY=($(compgen -W "replace" -- "$word")) ;;\n');
    expect(ran.out).toContain('        luks:2) COMPREPLY=($(compgen -W "recovery unlock" -- "$word")) ;;\n');
    expect(ran.out).toContain('        pki:2) COMPREPLY=($(compgen -W "init issue show" -- "$word")) ;;\n');
  });

  test.each(["bash", "zsh", "fish"])("completions for %s name every command", async (shell) => {
    const ran = await cctl(fakeHost(), ["completion", shell]);
    for (const { words } of commands) expect(ran.out).toContain(words[0] ?? "");
  });
});

describe("pki", () => {
  test("init makes the CA and an admin certificate, once", async () => {
    const host = fakeHost();
    const first = await cctl(host, ["pki", "init"]);
    expect(first.err).toBe("");
    expect(first.status).toBe(0);
    expect(host.node("/home/ann/.corium/operator-ca.key")?.mode).toBe(0o600);
    const before = host.text("/home/ann/.corium/operator-ca.key");
    const again = await cctl(host, ["pki", "init"]);
    expect(again.status).toBe(1);
    expect(again.err).toStartWith("cctl: there is an operator CA in /home/ann/.corium already\n  hint: ");
    expect(host.text("/home/ann/.corium/operator-ca.key")).toBe(before ?? "");
    const certificate = new X509Certificate(host.text("/home/ann/.corium/client.crt") ?? "");
    expect(certificate.subject.split("\n").sort()).toEqual(["CN=ann", "O=corium:admin"]);
    expect(
      certificate.verify(new X509Certificate(host.text("/home/ann/.corium/operator-ca.pem") ?? "").publicKey),
    ).toBe(true);
  });

  test("a key without its certificate is not overwritten either", async () => {
    const host = fakeHost();
    host.put("/home/ann/.corium/operator-ca.key", "PRIVATE", { mode: 0o600 });
    expect((await cctl(host, ["pki", "init"])).status).toBe(1);
    expect(host.text("/home/ann/.corium/operator-ca.key")).toBe("PRIVATE");
  });

  test("a certificate for somebody else was an admin's unless one thought of it", async () => {
    const host = fakeHost();
    await cctl(host, ["pki", "init"]);
    const ran = await cctl(host, ["pki", "issue", "--to", "/tmp/bob", "--name", "bob"]);
    expect(ran.status).toBe(2);
    expect(ran.err).toContain("give --role readonly|operator|admin");
  });

  test("issue --to makes a store for somebody else, without the CA key", async () => {
    const host = fakeHost();
    await cctl(host, ["pki", "init"]);
    const argv = ["pki", "issue", "--to", "/tmp/bob", "--name", "bob", "--role", "readonly", "--lifetime", "12h"];
    const issued = await cctl(host, argv);
    expect(issued.err).toBe("");
    expect(host.paths("/tmp/bob/")).toEqual(["/tmp/bob/client.crt", "/tmp/bob/client.key", "/tmp/bob/operator-ca.pem"]);
    const certificate = new X509Certificate(host.text("/tmp/bob/client.crt") ?? "");
    expect(certificate.subject).toContain("O=corium:readonly");
    expect(certificate.validToDate.getTime() - host.clock.nowMs()).toBeLessThanOrEqual(12 * 3_600_000);
    expect((await cctl(host, argv)).err).toStartWith("cctl: /tmp/bob/client.crt is there already");
  });

  test("no private key is ever printed", async () => {
    const host = fakeHost();
    const outputs = [
      await cctl(host, ["pki", "init"]),
      await cctl(host, ["pki", "show"]),
      await cctl(host, ["pki", "show", "-o", "json"]),
    ];
    for (const { out, err } of outputs) expect(out + err).not.toContain("PRIVATE KEY");
    expect(JSON.parse(outputs[2]?.out ?? "")).toMatchObject({ store: "/home/ann/.corium", nodes: [] });
  });

  test("B139: an expired client certificate is named as the reason, not the node", async () => {
    const host = fakeHost();
    await cctl(host, ["pki", "init"]);
    host.put(
      "/home/ann/.corium/config.yaml",
      `nodes:\n  127.0.0.1:1:\n    fingerprint: SHA256:${"A".repeat(43)}\n    name: node1\n`,
    );
    host.setNow(host.clock.nowMs() + 80 * 86_400_000);
    const warned = await cctl(host, ["status", "node1"]);
    expect(warned.err).toStartWith("cctl: warning: your client certificate expires on ");
    expect(warned.err).toContain("cctl: 127.0.0.1:1 refuses the connection\n");
    expect(warned.status).toBe(3);
    host.setNow(host.clock.nowMs() + 20 * 86_400_000);
    const refused = await cctl(host, ["status", "node1"]);
    expect(refused.err).toStartWith("cctl: your client certificate expired on ");
    expect(refused.status).toBe(4);
  });
});

describe("enroll", () => {
  test("nothing is sent when nobody is there to compare the fingerprint", async () => {
    const host = fakeHost();
    await cctl(host, ["pki", "init"]);
    const ran = await cctl(host, ["enroll", "127.0.0.1:1", "--code", "ABCD-EFGH", "--yes"]);
    expect(ran.err).toStartWith("cctl: nobody is here to compare the fingerprint, so nothing was sent\n");
    expect(ran.status).toBe(2);
  });
});
