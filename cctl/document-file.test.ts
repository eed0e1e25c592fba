import { expect, test } from "bun:test";
import { realRandom } from "../host/random.ts";
import { mintAuthority } from "../pki/driver.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { joinToken } from "../test/support/first-boot.ts";
import { readDocument } from "./document-file.ts";

type Context = Parameters<typeof readDocument>[0];

test("a document whose join token has ended was never sent to the node that had joined with it", async () => {
  const mintedMs = Date.UTC(2026, 0, 1);
  const { certificate } = await mintAuthority({ commonName: "kubernetes", nowMs: mintedMs, random: realRandom });
  const token = joinToken("kubelet-bootstrap", certificate);
  const host = fakeHost({ nowMs: Date.UTC(2040, 0, 1) });
  host.put("/w.yaml", `role: worker\ncluster: {endpoint: 192.0.2.10}\njoin: {token: "${token}"}\n`);
  const context = { files: host.files, clock: host.clock, io: { err: () => {} } } as unknown as Context;
  expect(await readDocument(context, "/w.yaml", "node in service")).toMatchObject({ ok: true });
  expect(await readDocument(context, "/w.yaml", "new node")).toMatchObject({ ok: false, error: { code: "document" } });
});
