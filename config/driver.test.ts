import { describe, expect, test } from "bun:test";
import type { BootFacts } from "../kit/paths.ts";
import type { Http, HttpRequest } from "../kit/ports.ts";
import { appError, formatError } from "../kit/app-error.ts";
import { nodePaths } from "../kit/paths.ts";
import { err, ok } from "../kit/result.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { findDocument } from "./driver.ts";
import type { SeedFile, Source } from "./source.ts";
import { sha256Of } from "../kit/sha256.ts";

const OWN = "/etc/corium/config.yaml";
const BAKED = "/usr/share/corium/config.yaml";
const MEDIUM = "/run/corium/medium";
const single = "role: single\n";
const named = (name: string): string => `role: single\nnode: {name: ${name}}\n`;
const boot: BootFacts = { mode: "live", medium: { device: "/dev/sr0", mountPoint: MEDIUM } };

interface World {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly cmdline?: string;
  readonly http?: Http;
  /** On removable media. */
  readonly seeds?: readonly SeedFile[];
}

function find({ files = {}, cmdline = "", http, seeds = [] }: World): Promise<Source> {
  const host = fakeHost({ files, ...(http === undefined ? {} : { http }) });
  const readSeeds = async () => ok({ files: seeds, notes: [] });
  return findDocument(host, { paths: nodePaths(), boot, cmdline, readSeeds });
}

const onStick = (text: string, device = "/dev/sdb1"): SeedFile => ({
  origin: `config.yaml on ${device} (CORIUM)`,
  isOurs: true,
  content: ok(new TextEncoder().encode(text)),
});
const onDisc = (text: string): SeedFile => ({
  origin: "user-data on /dev/sr0 (CIDATA)",
  isOurs: false,
  content: ok(new TextEncoder().encode(text)),
});

const serve =
  (body: string, seen: HttpRequest[] = [], status = 200): Http =>
  (request) => {
    seen.push(request);
    return Promise.resolve(ok({ status, body: new TextEncoder().encode(body), url: request.url }));
  };

function found(source: Source): Source & { readonly kind: "found" } {
  if (source.kind !== "found") throw new Error(JSON.stringify(source));
  return source;
}

function failed(source: Source): { readonly text: string; readonly retryable: boolean } {
  if (source.kind !== "failed") throw new Error(JSON.stringify(source));
  return { text: formatError(source.error), retryable: source.retryable };
}

describe("precedence", () => {
  const files = {
    [OWN]: named("own"),
    [`${MEDIUM}/config.yaml`]: named("seed"),
    "/arg.yaml": named("arg"),
    [BAKED]: single,
  };
  const cmdline = "corium.config=/arg.yaml";

  test("source 1, then the medium, then the kernel argument, then the baked default", async () => {
    expect(found(await find({ files, cmdline })).origin).toBe(OWN);
    const { [OWN]: _own, ...noOwn } = files;
    expect(found(await find({ files: noOwn, cmdline })).origin).toBe(`${MEDIUM}/config.yaml`);
    const { [`${MEDIUM}/config.yaml`]: _seed, ...noSeed } = noOwn;
    expect(found(await find({ files: noSeed, cmdline })).origin).toBe("corium.config=/arg.yaml");
    const baked = found(await find({ files: noSeed }));
    expect(baked).toMatchObject({ origin: BAKED, text: single, sha256: sha256Of(single), pinned: false });
  });

  test("B079: a seed medium that was left in does not overrule the node's own document, and both are named", async () => {
    const { origin, notes } = found(await find({ files, cmdline }));
    expect(origin).toBe(OWN);
    expect(notes).toEqual([
      `${MEDIUM}/config.yaml is not used: ${OWN} comes first`,
      `corium.config=/arg.yaml is not used: ${OWN} comes first`,
    ]);
    const same = { [OWN]: single, [`${MEDIUM}/config.yaml`]: single };
    expect(found(await find({ files: same })).notes).toEqual([]);
  });

  test("B081: a network-config beside the user-data is not used, and that is said", async () => {
    const seed = {
      [`${MEDIUM}/user-data`]: `corium:\n  ${single}`,
      [`${MEDIUM}/meta-data`]: "",
      [`${MEDIUM}/network-config`]: "version: 2",
    };
    const source = found(await find({ files: seed }));
    expect(source.origin).toBe(`${MEDIUM}/user-data`);
    expect(source.notes).toHaveLength(1);
    expect(source.notes[0]).toContain(`${MEDIUM}/network-config is not used`);
    expect(source.notes[0]).toContain("ip=");
  });

  test("B070, B072: user-data from Windows, or without its first line #cloud-config, is read all the same", async () => {
    const windows = `\ufeff#cloud-config\r\ncorium:\r\n  role: single\r\n`;
    const origin = "user-data on /dev/sr0 (CIDATA)";
    for (const text of [windows, "corium:\n  role: single\n"]) {
      const files = { [BAKED]: "role: worker\n" };
      expect(found(await find({ files, seeds: [onDisc(text)] })).origin).toBe(origin);
    }
    const none = await find({ seeds: [onDisc("users: [{name: ops}]\n")] });
    expect(none.kind).toBe("none");
    expect(none.notes.join()).toContain(`${origin} is no answer`);
  });

  test("no source at all is none", async () => {
    expect((await find({})).kind).toBe("none");
  });

  test("B084: a cloud-config that carries only an SSH key does not mask the configuration baked into the image", async () => {
    const seeds = [onDisc("#cloud-config\nssh_authorized_keys: [a]\n")];
    const source = found(await find({ files: { [BAKED]: single }, seeds }));
    expect(source.origin).toBe(BAKED);
    expect(source.notes.join()).toContain("user-data on /dev/sr0 (CIDATA) is no answer");
  });

  test("B073: user-data that is a script or broken elsewhere masks nothing, but our block in it is never dropped", async () => {
    const files = { [BAKED]: single };
    expect(found(await find({ files, seeds: [onDisc("#!/bin/sh\necho 'a: b: c'\n")] })).origin).toBe(BAKED);
    const broken = onDisc("#cloud-config\nwrite_files:\n- a\n  b: c: d\ncorium:\n  role: single\n");
    expect(found(await find({ files, seeds: [broken] })).origin).toBe("user-data on /dev/sr0 (CIDATA)");
  });

  test("an empty file and one of comments only are absent", async () => {
    expect(found(await find({ files: { [OWN]: "", [BAKED]: single } })).origin).toBe(BAKED);
    expect(found(await find({ files: { [OWN]: "# role: single\n", [BAKED]: single } })).origin).toBe(BAKED);
  });

  test("a misspelt source 1 does not fall through to the default", async () => {
    const { text } = failed(await find({ files: { [OWN]: "rolle: single\n", [BAKED]: single } }));
    expect(text).toContain(OWN);
    expect(text).toContain("role");
  });

  test("a document of ours that is wrong is still the answer: its problems are told, not hidden", async () => {
    expect(found(await find({ files: { [OWN]: "role: master\n", [BAKED]: single } })).text).toBe("role: master\n");
  });

  test("UTF-16 stops the search and names the source", async () => {
    const utf16 = new Uint8Array([0xff, 0xfe, 0x72, 0x00, 0x6f, 0x00]);
    expect(failed(await find({ files: { [OWN]: utf16, [BAKED]: single } })).text).toContain(OWN);
  });

  test("a document of more than 1 MiB stops the search", async () => {
    const files = { [OWN]: `${single}#${"x".repeat(1024 * 1024)}`, [BAKED]: single };
    expect(failed(await find({ files })).text).toContain(OWN);
  });
});

describe("seed media", () => {
  const files = { [BAKED]: single };
  const embedded = "#cloud-config\nusers: []\ncorium:\n  node: {name: seed}\n  role: single\n";

  test("come before the kernel argument and after source 1, and those that are not used are named", async () => {
    const all = { files: { ...files, "/arg.yaml": named("arg") }, cmdline: "corium.config=/arg.yaml" };
    const seeds = [onStick(named("seed"))];
    const { origin, notes } = found(await find({ ...all, seeds }));
    expect(origin).toBe("config.yaml on /dev/sdb1 (CORIUM)");
    expect(notes).toEqual([`corium.config=/arg.yaml is not used: ${origin} comes first`]);
    const own = found(await find({ files: { [OWN]: single }, seeds }));
    expect(own.origin).toBe(OWN);
    expect(own.notes).toEqual([`${origin} is not used: ${OWN} comes first`]);
  });

  test("that can't be read, or contradict each other, do not stop a node that has its own document", async () => {
    const seeds = [onStick(named("a")), onStick(named("b"), "/dev/sdc1")];
    expect(found(await find({ files: { [OWN]: single }, seeds })).origin).toBe(OWN);
    const hung: SeedFile = { ...onStick(""), content: err(appError("seed", "it hangs")) };
    expect(found(await find({ files: { [OWN]: single }, seeds: [hung] })).origin).toBe(OWN);
  });

  test("B079: two that say different things are refused naming both, wherever they are", async () => {
    for (const other of [onStick(named("b"), "/dev/sdc1"), onDisc("corium: {role: single}\n")]) {
      const { text, retryable } = failed(await find({ files, seeds: [onStick(named("a")), other] }));
      expect(text).toContain("config.yaml on /dev/sdb1 (CORIUM)");
      expect(text).toContain(other.origin);
      expect(retryable).toBe(false);
    }
    const { text } = failed(
      await find({ files: { [`${MEDIUM}/config.yaml`]: named("a") }, seeds: [onStick(named("b"))] }),
    );
    expect(text).toContain(`${MEDIUM}/config.yaml`);
    expect(text).toContain("/dev/sdb1");
  });

  test("two that say the same are one, also when one of them says it inside a cloud-config", async () => {
    const seeds = [onStick(named("seed")), onStick(named("seed"), "/dev/sdc1"), onDisc(embedded)];
    expect(found(await find({ files, seeds })).origin).toBe("config.yaml on /dev/sdb1 (CORIUM)");
  });

  test("two that differ in nothing but a secret are not the same", async () => {
    const worker = (token: string): string => `role: worker\njoin: {token: ${token}}\n`;
    expect(
      failed(
        await find({ files, seeds: [onStick(worker("a")), onDisc(`corium: {${"role: worker, join: {token: b}"}}\n`)] }),
      ).text,
    ).toContain("different things");
  });

  test("one that can't be read stops the search, whatever the other says", async () => {
    const content = err(appError("seed", "/dev/sdc1 can't be mounted: it did not end in time"));
    const hung: SeedFile = { origin: "config.yaml on /dev/sdc1 (CORIUM)", isOurs: true, content };
    const { text } = failed(await find({ files, seeds: [onStick(single), hung] }));
    expect(text).toContain("config.yaml on /dev/sdc1 (CORIUM)");
    expect(text).toContain("did not end in time");
  });

  test("an empty one is absent, a misspelt one of ours stops the search", async () => {
    expect(found(await find({ files, seeds: [onStick(""), onDisc("\n")] })).origin).toBe(BAKED);
    expect(failed(await find({ files, seeds: [onStick("rolle: single\n")] })).text).toContain("/dev/sdb1");
  });

  test("when the devices can't be listed nobody knows what was meant", async () => {
    const readSeeds = async () => err(appError("lsblk", "lsblk failed: exit status 1"));
    const host = fakeHost({ files });
    expect(failed(await findDocument(host, { paths: nodePaths(), cmdline: "", readSeeds })).text).toContain("lsblk");
  });

  test("are cloud-init's where the image has it: its merged document is the answer, and no medium is read", async () => {
    const merged = "/var/lib/cloud/instance/cloud-config.txt";
    const cloud = { ...files, "/usr/bin/cloud-init": "", [`${MEDIUM}/config.yaml`]: named("medium") };
    const seeds = [onStick(named("stick"))];
    expect(found(await find({ files: { ...cloud, [merged]: embedded }, seeds })).origin).toBe(merged);
    expect(found(await find({ files: { ...cloud, [merged]: "#cloud-config\nusers: []\n" }, seeds })).origin).toBe(
      BAKED,
    );
    expect(found(await find({ files: cloud, seeds })).origin).toBe(BAKED);
    const without = found(await find({ files: { ...files, [merged]: embedded }, seeds }));
    expect(without.origin).toBe("config.yaml on /dev/sdb1 (CORIUM)");
  });
});

describe("corium.config=", () => {
  test("a path is tried in the running system and on the medium", async () => {
    const files = { [`${MEDIUM}/nodes/a.yaml`]: single };
    expect(found(await find({ files, cmdline: "corium.config=/nodes/a.yaml" })).text).toBe(single);
    expect(found(await find({ files, cmdline: "corium.config=medium:/nodes/a.yaml" })).text).toBe(single);
  });

  test("a named file that is not there stops the search", async () => {
    const { text, retryable } = failed(await find({ files: { [BAKED]: single }, cmdline: "corium.config=/gone.yaml" }));
    expect(text).toContain("/gone.yaml");
    expect(retryable).toBe(false);
  });

  test("https is fetched with a limit of time and size, and the CA that is named", async () => {
    const seen: HttpRequest[] = [];
    const cmdline = "corium.config=https://seed.example.net/a.yaml?token=s3cr3t corium.config.ca=/ca.pem";
    const source = found(await find({ files: { "/ca.pem": "PEM" }, cmdline, http: serve(single, seen) }));
    expect(seen[0]).toMatchObject({ timeoutMs: 30_000, maxBytes: 1024 * 1024, trust: "PEM", isPinned: false });
    expect(source.origin).toBe("corium.config=https://seed.example.net/a.yaml");
    expect(JSON.stringify(source)).not.toContain("s3cr3t");
  });

  test("B082: an unreachable server is a failure that may pass, never a fall through", async () => {
    const http: Http = () => Promise.resolve(err(appError("refused", "seed.example.net refused the connection")));
    const source = await find({
      files: { [BAKED]: single },
      cmdline: "corium.config=https://seed.example.net/a",
      http,
    });
    expect(failed(source)).toMatchObject({ retryable: true });
  });

  test.each([
    [404, false],
    [503, true],
  ])("status %p, retryable %p", async (status, retryable) => {
    const http = serve("gone", [], status);
    expect(failed(await find({ cmdline: "corium.config=https://h/a", http })).retryable).toBe(retryable);
  });

  test("B125: plain http is refused without a hash, and taken with it, with a warning about secrets in it", async () => {
    expect(failed(await find({ cmdline: "corium.config=http://h/a", http: serve(single) })).text).toContain(
      "plain http",
    );
    const document = "role: worker\njoin: {token: hunter2}\n";
    const cmdline = `corium.config=http://h/a corium.config.sha256=${sha256Of(document)}`;
    const source = found(await find({ cmdline, http: serve(document) }));
    expect(source.pinned).toBe(true);
    expect(source.notes.join()).toContain("join.token");
    expect(source.notes.join()).not.toContain("hunter2");
  });

  test("a wrong hash is refused with both hashes", async () => {
    const cmdline = `corium.config=https://h/a corium.config.sha256=${"0".repeat(64)}`;
    const { text } = failed(await find({ cmdline, http: serve(single) }));
    expect(text).toContain("0".repeat(64));
    expect(text).toContain(sha256Of(single));
  });

  test("a pinned document and a seed medium that disagree are refused naming both", async () => {
    const cmdline = `corium.config=https://h/a corium.config.sha256=${sha256Of(single)}`;
    const files = { [`${MEDIUM}/config.yaml`]: named("seed") };
    const { text } = failed(await find({ files, cmdline, http: serve(single) }));
    expect(text).toContain("corium.config=https://h/a");
    expect(text).toContain(`${MEDIUM}/config.yaml`);
    const same = { [`${MEDIUM}/config.yaml`]: single };
    expect(found(await find({ files: same, cmdline, http: serve(single) })).pinned).toBe(true);
  });

  test("a pinned document and a stick that disagree are refused naming both", async () => {
    const cmdline = `corium.config=https://h/a corium.config.sha256=${sha256Of(single)}`;
    const { text } = failed(await find({ seeds: [onStick(named("seed"))], cmdline, http: serve(single) }));
    expect(text).toContain("corium.config=https://h/a");
    expect(text).toContain("config.yaml on /dev/sdb1 (CORIUM)");
    expect(found(await find({ seeds: [onStick(single)], cmdline, http: serve(single) })).pinned).toBe(true);
  });

  test.each([
    "corium.config=node.yaml",
    "corium.config=ftp://h/a",
    "corium.config.sha256=abc",
    `corium.config.sha256=${"0".repeat(64)}`,
  ])("%s is refused", async (cmdline) => {
    expect(failed(await find({ files: { [BAKED]: single }, cmdline })).retryable).toBe(false);
  });
});

test("a document with a byte order mark was recorded without it, and its file then counted as edited", async () => {
  const text = `\ufeff#cloud-config\ncorium: {role: single}\n`;
  expect(found(await find({ files: { [OWN]: text } }))).toMatchObject({ text, sha256: sha256Of(text) });
  expect(await find({ files: { [OWN]: "\ufeff#cloud-config\nusers: []\n" } })).toMatchObject({ kind: "none" });
});
