import { describe, expect, test } from "bun:test";
import { fingerprintOfPem } from "../pki/fingerprint.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { openStore } from "./store.ts";

const fingerprint = `SHA256:${"A".repeat(43)}`;

const { clock } = fakeHost();

describe("the store", () => {
  test("pins are found by address in any spelling and by name", async () => {
    const store = openStore(fakeHost().files, "/home/ann/.corium");
    expect((await store.pin({ address: "10.0.0.5:7443", fingerprint, name: "node1" }, clock)).ok).toBe(true);
    expect((await store.pin({ address: "[fd00::1]:7443", fingerprint }, clock)).ok).toBe(true);
    for (const text of ["node1", "10.0.0.5", "10.0.0.5:7443", "fd00::1"]) {
      const target = await store.resolve(text);
      expect(target.ok && target.value.pinned?.fingerprint).toBe(fingerprint);
    }
    const other = await store.resolve("10.0.0.6");
    expect(other).toEqual({ ok: true, value: { address: { host: "10.0.0.6", port: 7443 } } });
  });

  test("a name that two nodes carry names neither", async () => {
    const store = openStore(fakeHost().files, "/s");
    await store.pin({ address: "10.0.0.5:7443", fingerprint, name: "node1" }, clock);
    await store.pin({ address: "10.0.0.6:7443", fingerprint, name: "node1" }, clock);
    const target = await store.resolve("node1");
    expect(!target.ok && target.error.message).toBe("2 nodes are called 'node1'");
  });

  test("enrolling a replaced node again replaces its fingerprint", async () => {
    const host = fakeHost();
    const store = openStore(host.files, "/s");
    await store.pin({ address: "10.0.0.5:7443", fingerprint }, clock);
    await store.pin({ address: "10.0.0.5:7443", fingerprint: `SHA256:${"B".repeat(43)}` }, clock);
    expect(host.text("/s/config.yaml")).toBe(
      `# Kept by cctl: the fingerprint each node is known by.\nnodes:\n  10.0.0.5:7443:\n    fingerprint: SHA256:${"B".repeat(43)}\n`,
    );
  });

  test("keys are 0600, in a folder of 0700, and refused when others may read them", async () => {
    const host = fakeHost();
    const store = openStore(host.files, "/s");
    await store.write("key", "PRIVATE");
    expect(host.node("/s/client.key")?.mode).toBe(0o600);
    expect(host.node("/s")?.mode).toBe(0o700);
    const read = await store.readKey("key");
    expect(read.ok && read.value?.reveal()).toBe("PRIVATE");
    host.put("/s/client.key", "PRIVATE", { mode: 0o640 });
    const refused = await store.readKey("key");
    expect(!refused.ok && refused.error.message).toBe("/s/client.key may be read by others");
  });

  test.each(["nodes: [", "nodes: 1\n", "- x\n", "nodes:\n  a:1:\n    fingerprint: SHA256:short\n"])(
    "a damaged config says so: %j",
    async (text) => {
      const host = fakeHost();
      host.put("/s/config.yaml", text);
      const nodes = await openStore(host.files, "/s").nodes();
      expect(!nodes.ok && nodes.error.message).toContain("/s/config.yaml can't be read");
    },
  );
});

test("pki init started twice at once made two CAs, and the one that nodes may obey already was overwritten", async () => {
  const host = fakeHost();
  const ran = await Promise.all([1, 2, 3].map(() => runCctl(host, ["pki", "init"])));
  expect(ran.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([0, 1, 1]);
  const first = ran.find(({ status }) => status === 0);
  expect(first?.out).toContain(fingerprintOfPem(host.text("/home/ann/.corium/operator-ca.pem") ?? "") ?? "no CA");
  expect(ran.filter(({ err }) => err.includes("there is an operator CA"))).toHaveLength(2);
});

test("of nodes enrolled at the same time the store knew only the last", async () => {
  const host = fakeHost();
  const addresses = Array.from({ length: 12 }, (_, at) => `10.0.0.${at + 1}:7443`);
  // Each as a program of its own.
  await Promise.all(addresses.map((address) => openStore(host.files, "/s").pin({ address, fingerprint }, host.clock)));
  const known = await openStore(host.files, "/s").nodes();
  expect(known.ok && known.value.map(({ address }) => address).toSorted()).toEqual(addresses.toSorted());
  expect(host.text("/s/config.yaml.lock")).toBeUndefined();
});
