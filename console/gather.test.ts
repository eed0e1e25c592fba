import { expect, test } from "bun:test";
import { nodePaths } from "../kit/paths.ts";
import { fakeHost, type FakeHost } from "../test/support/fake-host.ts";
import { writeBootstrapStatus } from "../supervisor/bootstrap-status.ts";
import { renderLines } from "./frame.ts";
import { addressFeed, eventFeed, gatherView, isBegun, type LocalGet } from "./gather.ts";
import { viewFor } from "./views.ts";

const addresses = JSON.stringify([
  {
    ifname: "lo",
    flags: ["LOOPBACK", "UP"],
    addr_info: [{ family: "inet", local: "127.0.0.1", prefixlen: 8, scope: "host" }],
  },
  {
    ifname: "eth0",
    flags: ["UP"],
    addr_info: [{ family: "inet", local: "10.0.2.15", prefixlen: 24, scope: "global" }],
  },
]);

const viewOf = (host: FakeHost, get: LocalGet) =>
  gatherView({
    host,
    paths: nodePaths(),
    get,
    addresses: addressFeed(host),
    events: eventFeed(get),
    version: "0.1.0",
  });

test("a refusal that names an operation of its own has begun it; the one in the way is another's", () => {
  const error = "the document is applied, but helm failed";
  expect(isBegun({ error, reason: "chart-failed", operation: "op1" })).toBe(true);
  expect(isBegun({ error: "wait for it", reason: "busy", operation: "op1" })).toBe(false);
  expect([isBegun({ error: "refused", reason: "immutable" }), isBegun(null)]).toEqual([false, false]);
});

test("on a machine that is so busy that ip does not answer in time, its address is not said to be gone", async () => {
  const answers = [addresses, { exitCode: null }, "[]"];
  const read = addressFeed(fakeHost({ programs: { ip: () => answers.shift() ?? "" } }));
  const eth0 = [{ link: "eth0", address: "10.0.2.15/24" }];
  expect([await read(), await read(), await read()]).toEqual([eth0, eth0, []]);
});

test("while the API does not answer, the console shows what the files of /run say", async () => {
  const host = fakeHost({
    files: {
      "/proc/sys/kernel/hostname": "debian\n",
      "/run/corium/enrolment.json": '{"code":"ABCD-1234","fingerprint":"SHA256:x"}',
      "/run/corium/boot.json": '{"mode":"live"}',
      "/run/corium/bootstrap.json": writeBootstrapStatus({
        state: "waiting",
        kind: "install",
        message: "waiting to be claimed",
      }),
    },
    programs: { ip: () => addresses },
  });
  const get = async () => ({ problem: "not answering yet" });
  const view = await viewOf(host, get);
  expect(renderLines(view)).toEqual([
    "Corium 0.1.0",
    "name: debian",
    "address: eth0 10.0.2.15/24",
    "phase: live",
    "api: not answering yet",
    "waiting: to be claimed",
    "claim code: ABCD-1234",
    "fingerprint: SHA256:x",
    "claim with: cctl enroll 10.0.2.15 --code ABCD-1234 --fingerprint SHA256:x",
  ]);
});

test("files that are half there or hold nonsense do not end the console", async () => {
  for (const junk of ["", "{", "null", "[]", '{"state":"dancing"}']) {
    const files = { "/run/corium/bootstrap.json": junk, "/run/corium/boot.json": junk };
    const host = fakeHost({ files, programs: { ip: () => junk } });
    const get = async () => ({ text: junk });
    const view = await viewOf(host, get);
    expect(renderLines(view)[0]).toBe("Corium 0.1.0");
  }
});

test("keys show what they name, an unknown one nothing, an answer of nonsense a sentence", async () => {
  const get = async (path: string) =>
    path === "/v1/config/status"
      ? { text: '{"state":"drifted","reasons":[{"code":"x","message":"k0s.yaml was edited"}]}' }
      : { text: "nonsense" };
  expect(await viewFor("c", get)).toEqual(["configuration: drifted", "  k0s.yaml was edited"]);
  expect(await viewFor("d", get)).toEqual(["the API gave an answer that is not understood"]);
  expect(await viewFor("constructor", get)).toBeUndefined();
  expect(await viewFor("d", async () => ({ problem: "not answering yet" }))).toEqual(["api: not answering yet"]);
});

test("events are fetched once each, and the last ones stay while the API is away", async () => {
  const asked: string[] = [];
  const answers = [
    '{"seq":1,"atMs":0,"kind":"a","severity":"info","message":"one"}\n',
    '{"seq":2,"atMs":0,"kind":"a","severity":"info","message":"two"}\n',
  ];
  const feed = eventFeed(async (path) => {
    asked.push(path);
    const text = answers.shift();
    return text === undefined ? { problem: "not answering yet" } : { text };
  });
  await feed();
  await feed();
  expect((await feed()).map(({ message }) => message)).toEqual(["one", "two"]);
  expect(asked).toEqual(["/v1/events", "/v1/events?since=1", "/v1/events?since=2"]);
});
