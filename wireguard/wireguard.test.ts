import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { WireguardSpec } from "../config/document.ts";
import type { AppError } from "../kit/app-error.ts";
import { formatError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import type { StepContext } from "../kit/step.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { readOverlay, wireguardExecutors } from "./driver.ts";
import { isKey, privateKeyFrom, publicKeyOf } from "./key.ts";
import type { WireguardInterfaceStep, WireguardKeyStep } from "./model.ts";
import { parseNetworkctl, parseWgDump } from "./parse.ts";
import { planWireguard } from "./plan.ts";
import { renderWireguard } from "./render.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const sample = (name: string): string => readFileSync(join(import.meta.dir, "testdata", name), "utf8");
const status = sample("networkctl-json-status-wg0.txt");
const dump = sample("wg-show-all-dump-up.txt");

const wg0: WireguardSpec = {
  name: "wg0",
  address: ["10.10.0.1/24", "fd10::1/64"],
  listenPort: 51820,
  nodeAddress: true,
  generateKey: true,
  peers: [
    {
      publicKey: "STD2rTn0C9aHb+DNkcYnXFbNPo2gHX9/sCGGnafboTE=",
      endpoint: "node2.example.internal:51820",
      allowedIPs: ["10.10.0.2/32", "10.20.0.7/16", "10.20.0.0/16"],
      persistentKeepalive: 25,
      presharedKeyFrom: { file: "/run/psk" },
    },
  ],
};
const given: WireguardSpec = { ...wg0, generateKey: false, privateKey: "x" };

const value = <T>(result: Result<T, AppError>): T => {
  if (!result.ok) throw new Error(formatError(result.error));
  return result.value;
};

function stepsOf(spec: WireguardSpec): [WireguardKeyStep, WireguardInterfaceStep] {
  const [key, up] = planWireguard({ role: "controller", wireguard: [spec] }).steps;
  if (key?.kind !== "wireguard:key" || up?.kind !== "wireguard:interface") throw new Error("unexpected steps");
  return [key, up];
}

const privateKey = "/etc/systemd/network/corium-keys/wg0.key";
const [, sharedKey = ""] = stepsOf(wg0)[0].keys.map(({ path }) => path);

/** networkd: the interface is as the netdev and network files said, and has the keys that were there, when it was made. */
function machine(): FakeHost {
  let isUp = false;
  let [own, shared] = ["", ""];
  return fakeHost({
    programs: {
      networkctl: ({ argv }, fake) => {
        if (argv[1] === "reload" && !isUp) {
          isUp = fake.text("/etc/systemd/network/50-corium-wg0.netdev") !== undefined;
          own = publicKeyOf(fake.text(privateKey) ?? "") ?? "(none)";
          shared = fake.text(sharedKey)?.trim() ?? "(none)";
        }
        if (argv[1] === "delete") isUp = false;
        if (argv[1] !== "--json=short") return "";
        return isUp ? status : { exitCode: 1, stderr: 'Interface "wg0" not found.\n' };
      },
      wg: () => {
        const [, inside, outside] = /^wg0\t\S+\t(\S+)\t[^]*?\nwg0\t\S+\t(\S+)\t/.exec(dump) ?? [];
        return isUp ? dump.replace(inside ?? "?", own).replace(outside ?? "?", shared) : "";
      },
    },
  });
}

const psk = "wireguard[wg0].peers[0].presharedKeyFrom";
const context = (host: FakeHost, secrets: Record<string, string> = {}): StepContext => ({
  host,
  secrets: new Map(
    Object.entries({ [psk]: "SHARED", ...secrets }).map(([path, text]) => [path, new Secret(path, text)]),
  ),
  report: () => {},
});

describe("keys", () => {
  test("a public key is what wg pubkey says", () => {
    const wg = Bun.which("wg");
    if (wg === null) process.stderr.write("skipped: wg is not on this machine\n");
    // RFC 7748, section 6.1, Alice.
    expect(publicKeyOf("dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=")).toBe(
      "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
    );
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const key = privateKeyFrom(bytes);
        expect(isKey(key)).toBe(true);
        if (wg === null) return;
        const real = Bun.spawnSync([wg, "pubkey"], { stdin: Buffer.from(key) })
          .stdout.toString()
          .trim();
        expect(publicKeyOf(key)).toBe(real);
      }),
      { numRuns: 20 },
    );
  });

  test("no key: undefined, not an exception", () => {
    fc.assert(fc.property(fc.string(), (text) => void publicKeyOf(text)));
    expect(publicKeyOf("")).toBeUndefined();
  });

  test("made once and kept, readable by networkd and nobody else", async () => {
    const host = machine();
    const [key] = stepsOf(wg0);
    const executor = wireguardExecutors["wireguard:key"];
    expect(value(await executor.check(key, context(host)))).toBe("todo");
    value(await executor.run(key, context(host)));
    expect(value(await executor.check(key, context(host)))).toBe("done");
    const path = "/etc/systemd/network/corium-keys/wg0.key";
    expect(host.node(path)).toMatchObject({ mode: 0o640, owner: "root:systemd-network" });
    expect(host.node("/etc/systemd/network/corium-keys")).toMatchObject({ mode: 0o750, owner: "root:systemd-network" });
    const first = host.text(path);
    value(await executor.run(key, context(host)));
    host.boot();
    expect(host.text(path)).toBe(first);
    expect(host.calls.filter((call) => call.startsWith("exec "))).toEqual([]);
  });

  test("a key that an earlier document gave is none of the node's own, and its own stays through all retries", async () => {
    const host = machine();
    const executor = wireguardExecutors["wireguard:key"];
    const field = "wireguard[wg0].privateKey";
    const shown = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
    const secrets = context(host, { [field]: shown });
    value(await executor.run(stepsOf(given)[0], secrets));
    const [own] = stepsOf(wg0);
    expect(value(await executor.check(own, secrets))).toBe("todo");
    value(await executor.run(own, secrets));
    const made = host.text(privateKey);
    expect(made).not.toContain(shown);
    expect(value(await executor.check(own, secrets))).toBe("done");
    value(await executor.run(own, secrets));
    expect(host.text(privateKey)).toBe(made);
    // And back again, twice.
    value(await executor.run(stepsOf(given)[0], secrets));
    expect(value(await executor.check(own, secrets))).toBe("todo");
  });

  test("a given key replaces another one; one that is not resolved stops the step without a word of it", async () => {
    const host = machine();
    const [key] = stepsOf(given);
    const executor = wireguardExecutors["wireguard:key"];
    expect(await executor.run(key, context(host))).toMatchObject({ ok: false, error: { code: "secret-missing" } });
    const secrets = { "wireguard[wg0].privateKey": "PRIVATE\n" };
    value(await executor.run(key, context(host, secrets)));
    expect(host.text("/etc/systemd/network/corium-keys/wg0.key")).toBe("PRIVATE\n");
    expect(value(await executor.check(key, context(host, { "wireguard[wg0].privateKey": "OTHER" })))).toBe("todo");
    expect(JSON.stringify(key)).not.toContain("PRIVATE");
    expect(host.calls.join()).not.toContain("PRIVATE");
  });
});

describe("render", () => {
  test("netdev and network: masked and deduplicated ranges, keys by file, no secret", () => {
    const files = renderWireguard({ role: "worker", wireguard: [{ ...wg0, mtu: 1400 }] });
    const text = (end: string): string => files.find((file) => file.path.endsWith(end))?.content ?? "";
    const [, shared = ""] = stepsOf(wg0)[0].keys.map((key) => key.path);
    expect(text(".netdev")).toBe(
      [
        "# Written by corium from the node's document.",
        "",
        "[NetDev]",
        "Name=wg0",
        "Kind=wireguard",
        "MTUBytes=1400",
        "",
        "[WireGuard]",
        "PrivateKeyFile=/etc/systemd/network/corium-keys/wg0.key",
        "ListenPort=51820",
        "RouteTable=main",
        "",
        "[WireGuardPeer]",
        "PublicKey=STD2rTn0C9aHb+DNkcYnXFbNPo2gHX9/sCGGnafboTE=",
        `PresharedKeyFile=${shared}`,
        "AllowedIPs=10.10.0.2/32",
        "AllowedIPs=10.20.0.0/16",
        "Endpoint=node2.example.internal:51820",
        "PersistentKeepalive=25",
        "",
      ].join("\n"),
    );
    expect(text(".network")).toContain("Address=10.10.0.1/24\nAddress=fd10::1/64\n");
    expect(files.map((file) => file.path)).toContain(
      "/etc/systemd/system/k0sworker.service.d/50-corium-overlay-wg0.conf",
    );
    expect(text(".psk")).toBe(`<secret:${psk}>\n`);
    expect(text("wg0.key")).toBe("");
    // networkd runs as its own user: a netdev of root's alone would be dropped without a word.
    expect(files.find((file) => file.path.endsWith(".netdev"))).toMatchObject({
      mode: 0o640,
      owner: { user: "root", group: "systemd-network" },
    });
  });

  test("an inline key stands as its field", () => {
    const files = renderWireguard({ role: "worker", wireguard: [given] });
    expect(files.find((file) => file.path.endsWith("wg0.key"))?.content).toBe("<secret:wireguard[wg0].privateKey>\n");
  });

  test("reordering peers renames no key file", () => {
    const [first] = wg0.peers;
    if (first === undefined) throw new Error("no peer");
    const second = { ...first, publicKey: "kQ1+gjsh/yMrZMZpd3Ymjuk0nxPkZtlmtBSgfHuaXgo=" };
    const paths = (peers: WireguardSpec["peers"]): string[] =>
      stepsOf({ ...wg0, peers })[0]
        .keys.map((key) => key.path)
        .toSorted();
    expect(paths([second, first])).toEqual(paths([first, second]));
  });
});

describe("wireguard:interface", () => {
  const executor = wireguardExecutors["wireguard:interface"];

  test("B037: up with its keys although no endpoint resolves, and then nothing is written again", async () => {
    const host = machine();
    const [, up] = stepsOf(wg0);
    expect(value(await executor.check(up, context(host)))).toBe("todo");
    value(await executor.run(up, context(host)));
    expect(value(await executor.check(up, context(host)))).toBe("done");
    const writes = (): number => host.calls.filter((call) => call.startsWith("files.write")).length;
    const before = writes();
    value(await executor.run(up, context(host)));
    expect(writes()).toBe(before);
  });

  test("a corrected key, of its own or a shared one: the interface went on with the one that it was made with", async () => {
    for (const [path, corrected] of [
      [privateKey, "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=\n"],
      [sharedKey, "727TzoISoGjjWfwVKHYOuXjvn83KIDrCoj7LuVX8FzU=\n"],
    ] as const) {
      const host = machine();
      const [keys, up] = stepsOf(wg0);
      value(await wireguardExecutors["wireguard:key"].run(keys, context(host)));
      value(await executor.run(up, context(host)));
      expect(value(await executor.check(up, context(host)))).toBe("done");
      host.put(path, corrected);
      expect(value(await executor.check(up, context(host)))).toBe("todo");
      const from = host.calls.length;
      value(await executor.run(up, context(host)));
      expect(host.calls.slice(from)).toContain("exec networkctl delete wg0");
      expect(value(await executor.check(up, context(host)))).toBe("done");
      for (const secret of [corrected.trim(), dump.split("\t")[1] ?? "?"])
        expect(host.calls.join()).not.toContain(secret);
    }
  });

  test("changed peers need reconfigure for their routes, a changed MTU a new interface", async () => {
    const host = machine();
    value(await executor.run(stepsOf(wg0)[1], context(host)));
    const from = host.calls.length;
    value(await executor.run(stepsOf({ ...wg0, peers: [] })[1], context(host)));
    expect(host.calls.slice(from)).toContain("exec networkctl reconfigure wg0");
    const [, wide] = stepsOf({ ...wg0, mtu: 1400 });
    expect(value(await executor.check(wide, context(host)))).toBe("todo");
    value(await executor.run(wide, context(host)));
    expect(host.calls).toContain("exec networkctl delete wg0");
  });

  test("a wait that ends says what networkd had to say", async () => {
    const host = fakeHost({
      programs: { networkctl: ({ argv }) => (argv[1] === "reload" ? "" : { exitCode: 1 }) },
      units: { "systemd-networkd.service": { journal: ["wg0: Failed to read private key"] } },
    });
    const ran = await executor.run(stepsOf(wg0)[1], context(host));
    expect(ran).toMatchObject({
      ok: false,
      error: { code: "overlay-down", details: ["wg0: Failed to read private key"] },
    });
  });

  test("an interface without one of its addresses is not up", async () => {
    const host = machine();
    const [, up] = stepsOf({ ...wg0, address: ["10.10.0.1/24", "10.99.0.1/24"] });
    expect(await executor.run(up, context(host))).toMatchObject({ ok: false, error: { code: "overlay-down" } });
  });
});

describe("status", () => {
  test("wg's dump is read without its keys", () => {
    const text = sample("wg-show-all-dump-up.txt");
    const [found] = parseWgDump(text);
    expect(found).toMatchObject({
      name: "wg0",
      publicKey: "kQ1+gjsh/yMrZMZpd3Ymjuk0nxPkZtlmtBSgfHuaXgo=",
      listenPort: 51820,
      peers: [{ endpoint: "10.9.0.2:51820", latestHandshake: 1795997478, receivedBytes: 124, sentBytes: 180 }],
    });
    const secrets = [text.split("\n")[0]?.split("\t")[1], text.split("\n")[1]?.split("\t")[2]];
    for (const secret of secrets) expect(JSON.stringify(found)).not.toContain(secret ?? "absent");
  });

  test("a peer that never answered has neither endpoint nor handshake", () => {
    const rows = "wg0\tP\tQ\t0\toff\nwg0\tK\t(none)\t(none)\t10.0.0.0/24\t0\t0\t0\toff\n";
    expect(parseWgDump(rows)).toEqual([
      {
        name: "wg0",
        publicKey: "Q",
        peers: [{ publicKey: "K", allowedIPs: ["10.0.0.0/24"], receivedBytes: 0, sentBytes: 0 }],
      },
    ]);
  });

  test("networkctl's status", () => {
    expect(parseNetworkctl(status)).toEqual({
      isUp: true,
      isConfigured: true,
      mtu: 1420,
      addresses: ["10.10.0.1/24", "fd10:0:0:0:0:0:0:1/64"],
    });
    expect(parseNetworkctl("")).toBeUndefined();
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void [parseNetworkctl(text), parseWgDump(text)]));
  });

  test("readOverlay: up with handshakes; down, the public key is known all the same", async () => {
    const host = machine();
    const [key, up] = stepsOf(wg0);
    value(await wireguardExecutors["wireguard:key"].run(key, context(host)));
    value(await wireguardExecutors["wireguard:interface"].run(up, context(host)));
    const [report] = await readOverlay(host, [wg0]);
    expect(report).toMatchObject({ name: "wg0", up: true, peers: [{ lastHandshake: "2026-11-30T00:11:18.000Z" }] });
    expect(report?.peers[0]).toMatchObject({ receivedBytes: 124, sentBytes: 180 });
    host.programs.set("wg", () => ({ exitCode: 1 }));
    host.programs.set("networkctl", () => ({ exitCode: 1 }));
    const [down] = await readOverlay(host, [wg0]);
    expect(down).toMatchObject({ up: false, peers: [] });
    expect(down?.publicKey).toBe(publicKeyOf(host.text("/etc/systemd/network/corium-keys/wg0.key") ?? "") ?? "none");
  });
});

test("B038: an mtu that can't fit is a warning", () => {
  expect(planWireguard({ role: "worker", wireguard: [{ ...wg0, mtu: 1500 }] }).findings).toMatchObject([
    { severity: "warning", code: "overlay-mtu", path: "wireguard[0].mtu" },
  ]);
});
