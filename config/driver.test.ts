import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { BootFacts } from "../kit/paths.ts";
import type { Http, HttpRequest } from "../kit/ports.ts";
import { appError, formatError } from "../kit/app-error.ts";
import { nodePaths } from "../kit/paths.ts";
import { err, ok } from "../kit/result.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { findDocument, type Source } from "./driver.ts";

const OWN = "/etc/corium/config.yaml";
const BAKED = "/usr/share/corium/config.yaml";
const MEDIUM = "/run/corium/medium";
const single = "role: single\n";
const named = (name: string): string => `role: single\nnode: {name: ${name}}\n`;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const boot: BootFacts = { mode: "live", medium: { device: "/dev/sr0", mountPoint: MEDIUM } };

interface World {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly cmdline?: string;
  readonly http?: Http;
  readonly seedFolders?: readonly string[];
}

function find({ files = {}, cmdline = "", http, seedFolders = [] }: World): Promise<Source> {
  const host = fakeHost({ files, ...(http === undefined ? {} : { http }) });
  return findDocument(host, { paths: nodePaths(), boot, cmdline, seedFolders });
}

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
    expect(baked).toMatchObject({ origin: BAKED, text: single, sha256: sha256(single), pinned: false });
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
      "/seed/user-data": `corium:\n  ${single}`,
      "/seed/meta-data": "",
      "/seed/network-config": "version: 2",
    };
    const source = found(await find({ files: seed, seedFolders: ["/seed"] }));
    expect(source.origin).toBe("/seed/user-data");
    expect(source.notes).toHaveLength(1);
    expect(source.notes[0]).toContain("/seed/network-config is not used");
    expect(source.notes[0]).toContain("ip=");
  });

  test("B070, B072: user-data from Windows, or without its first line #cloud-config, is read all the same", async () => {
    const windows = `\ufeff#cloud-config\r\ncorium:\r\n  role: single\r\n`;
    for (const text of [windows, "corium:\n  role: single\n"]) {
      const files = { "/seed/user-data": text, [BAKED]: "role: worker\n" };
      expect(found(await find({ files, seedFolders: ["/seed"] })).origin).toBe("/seed/user-data");
    }
    const other = { "/seed/user-data": "users: [{name: ops}]\n" };
    const none = await find({ files: other, seedFolders: ["/seed"] });
    expect(none.kind).toBe("none");
    expect(none.notes.join()).toContain("/seed/user-data is no answer");
  });

  test("no source at all is none", async () => {
    expect((await find({})).kind).toBe("none");
  });

  test("B084: a cloud-config that carries only an SSH key does not mask the configuration baked into the image", async () => {
    const seed = { "/mnt/cidata/user-data": "#cloud-config\nssh_authorized_keys: [a]\n", [BAKED]: single };
    const source = found(await find({ files: seed, seedFolders: ["/mnt/cidata"] }));
    expect(source.origin).toBe(BAKED);
    expect(source.notes.join()).toContain("/mnt/cidata/user-data is no answer");
  });

  test("B073: user-data that is a script or broken elsewhere masks nothing, but our block in it is never dropped", async () => {
    const script = { "/seed/user-data": "#!/bin/sh\necho 'a: b: c'\n", [BAKED]: single };
    expect(found(await find({ files: script, seedFolders: ["/seed"] })).origin).toBe(BAKED);
    const broken = {
      "/seed/user-data": "#cloud-config\nwrite_files:\n- a\n  b: c: d\ncorium:\n  role: single\n",
      [BAKED]: single,
    };
    expect(found(await find({ files: broken, seedFolders: ["/seed"] })).origin).toBe("/seed/user-data");
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
    const cmdline = `corium.config=http://h/a corium.config.sha256=${sha256(document)}`;
    const source = found(await find({ cmdline, http: serve(document) }));
    expect(source.pinned).toBe(true);
    expect(source.notes.join()).toContain("join.token");
    expect(source.notes.join()).not.toContain("hunter2");
  });

  test("a wrong hash is refused with both hashes", async () => {
    const cmdline = `corium.config=https://h/a corium.config.sha256=${"0".repeat(64)}`;
    const { text } = failed(await find({ cmdline, http: serve(single) }));
    expect(text).toContain("0".repeat(64));
    expect(text).toContain(sha256(single));
  });

  test("a pinned document and a seed medium that disagree are refused naming both", async () => {
    const cmdline = `corium.config=https://h/a corium.config.sha256=${sha256(single)}`;
    const files = { [`${MEDIUM}/config.yaml`]: named("seed") };
    const { text } = failed(await find({ files, cmdline, http: serve(single) }));
    expect(text).toContain("corium.config=https://h/a");
    expect(text).toContain(`${MEDIUM}/config.yaml`);
    const same = { [`${MEDIUM}/config.yaml`]: single };
    expect(found(await find({ files: same, cmdline, http: serve(single) })).pinned).toBe(true);
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
