import { expect, test } from "bun:test";
import { nodePaths } from "../kit/paths.ts";
import { memoryState } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { reconcileDocument } from "./reconcile-document.ts";

const paths = nodePaths();
const operator = { kind: "operator", name: "o", role: "admin", fingerprint: "f", address: "10.0.0.1" } as const;

const before = (text: string) => {
  const state = memoryState();
  state.documents.add({ text: "role: single\n", atMs: 1, requester: operator, origin: "apply" });
  return { state, paths, host: fakeHost({ files: { [paths.config]: text } }) };
};

test("killed between writing source 1 and recording it: the API goes on showing the document before", async () => {
  const of = before("role: single\nnode: {name: new}\n");
  expect(await reconcileDocument(of)).toBe(true);
  expect(of.state.documents.latest()).toMatchObject({
    text: "role: single\nnode: {name: new}\n",
    origin: paths.config,
    requester: { kind: "document" },
  });
  expect(await reconcileDocument(of)).toBe(false);
  expect(of.state.documents.list()).toHaveLength(2);
});

test("a file that was recorded, that is no document, or that is not there changes nothing", async () => {
  for (const text of ["role: single\n", "role: master\n", "half a doc"]) {
    const of = before(text);
    expect(await reconcileDocument(of)).toBe(false);
    expect(of.state.documents.list()).toHaveLength(1);
  }
  const state = memoryState();
  expect(await reconcileDocument({ state, paths, host: fakeHost({}) })).toBe(false);
});

test("in service an edited file is a pending change and no record of what runs", async () => {
  const of = before("role: single\nnode: {name: edited}\n");
  const document = of.state.documents.latest();
  if (document === undefined) throw new Error("it was just added");
  of.state.baseline.set({
    document,
    hostname: "n",
    machineId: "m",
    addresses: {},
    k0sVersion: "v1.36.4+k0s.1",
    inputHash: "h",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 2,
  });
  expect(await reconcileDocument(of)).toBe(false);
  expect(of.state.documents.list()).toHaveLength(1);
});
