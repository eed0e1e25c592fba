import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { NodeAnswer } from "../api/contract.ts";
import type { ConsoleView } from "./model.ts";
import { bridge, COLUMNS, keysLine, renderLines, renderScreen, ROWS, wrap } from "./frame.ts";
import { appendChanges, paintAll, paintChanges } from "./writer.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const fingerprint = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
const view = (changes: Partial<ConsoleView> = {}): ConsoleView => ({
  version: "0.1.0",
  hostname: "corium-01234567",
  addresses: [{ link: "eth0", address: "192.168.1.10/24" }],
  events: [],
  ...changes,
});
const node = (changes: Partial<NodeAnswer> = {}): NodeAnswer => ({
  hostname: "n1",
  machineID: "0",
  bootstrapped: true,
  phase: "in-service",
  role: "single",
  cluster: "shop",
  os: { name: "Corium", kernel: "6.12", booted: { version: "0.1.0" } },
  health: { verdict: "healthy", uptimeSeconds: 1, checks: [] },
  management: { claimedBy: "SHA256:x" },
  storage: { arrays: [], mounts: [] },
  overlay: [],
  config: { state: "in-sync", reasons: [] },
  ...changes,
});

describe("frame", () => {
  test("B120: an unclaimed node shows code, fingerprint and the line to type, for whoever reads any console", () => {
    const lines = renderLines(view({ enrolment: { code: "ABCD-1234", fingerprint } }));
    expect(lines).toContain("claim code: ABCD-1234");
    expect(lines).toContain(`fingerprint: ${fingerprint}`);
    expect(lines).toContain(`claim with: cctl enroll 192.168.1.10 --code ABCD-1234 --fingerprint ${fingerprint}`);
  });

  test("a claimed node shows no code even while the file is still there", () => {
    const text = renderLines(view({ enrolment: { code: "ABCD-1234", fingerprint }, node: node() })).join("\n");
    expect(text).not.toContain("ABCD-1234");
  });

  test("a node that anyone may claim, or somebody claimed without a code, says so loudly", () => {
    expect(renderLines(view({ enrolment: { fingerprint } })).join("\n")).toContain("claim code: NONE IS ASKED FOR");
    const taken = renderLines(view({ node: node({ management: { claimedBy: "x", unauthenticated: true } }) }));
    expect(taken.join("\n")).toContain("claimed by: somebody who showed no code");
  });

  test("the running step, what it waits for, and a failure with its cause and cure", () => {
    const lines = renderLines(
      view({
        bootstrap: {
          state: "failed",
          kind: "bootstrap",
          step: { id: "raid:data:create", title: "create RAID 1 array data" },
          message: "waiting for /dev/md/data to appear",
          error: ["could not create: disk is gone", "  hint: put it back"],
        },
      }),
    );
    expect(lines).toContain("step: create RAID 1 array data");
    expect(lines).toContain("waiting: /dev/md/data to appear");
    expect(lines).toContain("error: could not create: disk is gone");
    expect(lines).toContain("  hint: put it back");
    expect(lines).toContain("phase: provisioning");
  });

  test("work is told from a wait, and what was never made is not missing", () => {
    const bootstrap = { state: "running" as const, kind: "bootstrap" as const, message: "writing 161 MiB into slot A" };
    const mounts = [{ path: "/var/lib/k0s", source: "", filesystem: "ext4", mounted: false }];
    const lines = renderLines(
      view({ bootstrap, node: node({ phase: "provisioning", storage: { arrays: [], mounts } }) }),
    );
    expect(lines).toContain("doing: writing 161 MiB into slot A");
    expect(lines.join("\n")).not.toContain("not mounted");
  });

  test("pending and drifted say the first reason and how many more there are; in sync says nothing", () => {
    const configLines = (state: NodeAnswer["config"]["state"], reasons: readonly string[]): readonly string[] =>
      renderLines(view({ node: node({ config: { state, reasons } }) })).filter((line) => line.startsWith("config:"));
    expect(configLines("in-sync", [])).toEqual([]);
    expect(configLines("drifted", ["/etc/hosts was changed"])).toEqual(["config: drifted: /etc/hosts was changed"]);
    expect(configLines("pending", ["a", "b", "c"])).toEqual(["config: pending: a (and 2 more)"]);
  });

  test("an API that misses an answer or two changes nothing on the screen, one that stays away is named", () => {
    const last = node();
    const silent = view({ apiProblem: "not answering yet" });
    expect(renderLines(bridge(silent, last, 0))).toEqual(renderLines(view({ node: last })));
    expect(renderLines(bridge(silent, last, 3))).toContain("api: not answering yet");
    expect(renderLines(bridge(silent, undefined, 0))).toContain("api: not answering yet");
  });

  test("the keys fit one line, and are those that do something here", () => {
    const live = keysLine(view({ boot: { mode: "live" } }));
    expect(live).toBe("keys: l log, d disks, n network, c config, i install, t retry, p power, Enter");
    const serving = keysLine(view({ node: node(), boot: { mode: "disk" } }));
    expect(serving).toBe("keys: l log, d disks, n network, c config, r previous, t retry, p power, Enter");
    expect(keysLine(view())).toBe("keys: l log, d disks, n network, c config, t retry, p power, Enter");
    for (const line of [live, serving]) expect(line.length).toBeLessThanOrEqual(COLUMNS);
    expect(renderScreen(view({ boot: { mode: "live" } })).at(-1)).toBe(live);
  });

  test("a locked volume is named with the key that opens it, which stands there only then", () => {
    const volumes = [
      { name: "vault", unlock: "tpm2", state: "locked" },
      { name: "attic", unlock: "passphrase", state: "missing" },
      { name: "cellar", unlock: "tpm2", state: "open" },
    ] as const;
    const locked = view({ node: node({ storage: { arrays: [], mounts: [], volumes } }), boot: { mode: "disk" } });
    const lines = renderLines(locked).filter((line) => line.startsWith("volume"));
    expect(lines).toEqual(["volume: vault is locked; u opens it with its key", "volume: attic is missing"]);
    expect(keysLine(locked)).toContain(" u unlock,");
    expect(keysLine(locked).length).toBeLessThanOrEqual(COLUMNS);
  });

  test("the stand-in is named as what it is", () => {
    const lines = renderLines(
      view({ node: node({ kubernetes: { version: "v1-sim", service: "k0s", active: true, standIn: true } }) }),
    );
    expect(lines.join("\n")).toContain("NOT KUBERNETES");
  });

  test("B033: a mirrored system with one disk gone says so before anybody claimed it; what a document asks for waits", () => {
    const array = { level: "raid1", state: "degraded", active: 1, expected: 2 };
    const arrays = [
      { ...array, name: "system" },
      { ...array, name: "data", state: "missing" },
    ];
    const lines = renderLines(view({ node: node({ phase: "maintenance", storage: { arrays, mounts: [] } }) }));
    expect(lines.filter((line) => line.startsWith("array:"))).toEqual(["array: system raid1 degraded 1/2"]);
  });

  test("arrays, overlay, virtual address and mounts that are missing", () => {
    const lines = renderLines(
      view({
        node: node({
          storage: {
            arrays: [
              { name: "data", level: "raid1", state: "degraded", active: 1, expected: 2, progressPercent: 12.7 },
            ],
            mounts: [{ path: "/var/lib/k0s", source: "UUID=x", filesystem: "ext4", mounted: false }],
          },
          overlay: [{ name: "wg0", up: true, addresses: ["10.10.0.2/24"], peers: [{ publicKey: "k" }] }],
          ha: { vip: "192.168.1.50", holder: true },
        }),
      }),
    );
    expect(lines).toContain("array: data raid1 degraded 1/2, rebuilding 12 %");
    expect(lines).toContain("mount: /var/lib/k0s is not mounted (UUID=x)");
    expect(lines).toContain("overlay: wg0 up 10.10.0.2/24, heard 0 of 1 peers");
    expect(lines).toContain("vip: 192.168.1.50, held here");
  });

  test("B181: an address that is gone is on the screen: a person stands there with a cable", () => {
    const checks = [{ name: "address", ok: false, message: "this node entered service with 192.0.2.2" }];
    const health = { verdict: "unhealthy", uptimeSeconds: 1, checks } as const;
    expect(renderLines(view({ node: node({ health }) }))).toContain(
      "problem: this node entered service with 192.0.2.2",
    );
  });

  test("B042: two holders of the virtual address, or none, can't be overlooked", () => {
    const vipLine = (ha: NonNullable<NodeAnswer["ha"]>) =>
      renderLines(view({ node: node({ ha }) })).find((line) => line.startsWith("vip:"));
    const [vip, others] = ["192.168.1.50", ["52:54:00:00:00:02"]];
    expect(vipLine({ vip, holder: true, others, state: "contested" })).toBe(
      "vip: 192.168.1.50, MORE THAN ONE HOLDER: this node and 52:54:00:00:00:02",
    );
    expect(vipLine({ vip, holder: false, others: [], state: "unheld" })).toBe("vip: 192.168.1.50, held by nobody");
    expect(vipLine({ vip, holder: false, others, state: "elsewhere" })).toBe(
      "vip: 192.168.1.50, held by 52:54:00:00:00:02",
    );
    expect(vipLine({ vip, holder: false })).toBe("vip: 192.168.1.50, not held here");
  });

  test("a peer that is not heard is there with its cause; one that nobody sends to is no trouble", () => {
    const peers = [
      { publicKey: "a", state: "up", lastHandshake: "2026-01-02T03:04:05Z" },
      { publicKey: "b", endpoint: "192.0.2.1:51820", state: "silent", cause: "no handshake ever with 192.0.2.1:51820" },
      { publicKey: "c", state: "idle", cause: "nothing is sent to it", lastHandshake: "2026-01-01T03:04:05Z" },
    ] as const;
    const overlay = [{ name: "wg0", up: true, addresses: ["10.10.0.2/24"], peers }];
    expect(renderLines(view({ node: node({ overlay }) })).filter((line) => /^(overlay|peer):/.test(line))).toEqual([
      "overlay: wg0 up 10.10.0.2/24, heard 1 of 3 peers",
      "peer: 192.0.2.1:51820 no handshake ever with 192.0.2.1:51820",
    ]);
  });

  test("B119: whatever a disk or a document calls itself, a screen is 24 lines of at most 80 plain characters", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.array(fc.string({ unit: "binary", maxLength: 300 })),
        (hostname, error) => {
          const lines = renderScreen(view({ hostname, bootstrap: { state: "failed", kind: "install", error } }));
          expect(lines).toHaveLength(ROWS);
          for (const line of lines) expect(line).toMatch(/^[ -~]{0,80}$/);
        },
      ),
    );
  });

  test("wrapping loses no word", () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{1,30}$/), { minLength: 1, maxLength: 40 }), (words) => {
        const lines = wrap(words.join(" "), COLUMNS);
        expect(lines.map((line) => line.trim()).join(" ")).toBe(words.join(" "));
        expect(lines.every((line) => line.length <= COLUMNS)).toBe(true);
      }),
    );
  });
});

/** A terminal of a few lines of code: CUP, EL, clear, CR LF. */
function terminal(): { feed(text: string): void; rows(): string[] } {
  const cells = new Map<number, string>();
  let [row, column] = [0, 0];
  return {
    feed: (text) => {
      // Escapes are made visible first, so that the pattern needs no control characters.
      const visible = text.replaceAll("\x1b[", "\u241b").replaceAll("\r\n", "\u240d");
      for (const [token, place, erase] of visible.matchAll(/\u241b(\d+;1H|H)|\u241b(2J|K)|\u240d|[^\u241b\u240d]+/g)) {
        if (place !== undefined) [row, column] = [place === "H" ? 0 : Number.parseInt(place, 10) - 1, 0];
        else if (erase === "2J") cells.clear();
        else if (erase === "K") cells.set(row, (cells.get(row) ?? "").slice(0, column));
        else if (token === "\u240d") [row, column] = [row + 1, 0];
        else {
          const old = cells.get(row) ?? "";
          cells.set(row, old.slice(0, column).padEnd(column) + token + old.slice(column + token.length));
          column += token.length;
        }
      }
    },
    rows: () => Array.from({ length: ROWS }, (_, at) => (cells.get(at) ?? "").trimEnd()),
  };
}

describe("writer", () => {
  const line = fc.stringMatching(/^[ -~]{0,80}$/);
  const screen = fc.array(line, { minLength: ROWS, maxLength: ROWS });

  test("after any two paints a terminal shows the second, and nothing is sent when nothing changed", () => {
    fc.assert(
      fc.property(screen, screen, (before, after) => {
        const seen = terminal();
        seen.feed(paintAll(before));
        seen.feed(paintChanges(before, after));
        expect(seen.rows()).toEqual(after.map((row) => row.trimEnd()));
        expect(paintChanges(after, after)).toBe("");
      }),
    );
  });

  test("B119: a serial line gets only what is new, without cursor control", () => {
    const text = appendChanges(["phase: starting", "step: a"], ["phase: starting", "step: b", "waiting: c"]);
    expect(text).toBe("step: b\r\nwaiting: c\r\n");
    expect(appendChanges(["a", "b"], ["a"])).toBe("");
  });
});
