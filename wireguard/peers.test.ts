import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PeerStatus } from "./model.ts";
import { parseWgDump } from "./parse.ts";
import type { PeerHistory, PeerState } from "./peers.ts";
import { isTroubled, judgePeer, peerName, probeTarget } from "./peers.ts";

const key = "STD2rTn0C9aHb+DNkcYnXFbNPo2gHX9/sCGGnafboTE=";
const now = 1_800_000_000;
const status = (more: Partial<PeerStatus> = {}): PeerStatus => ({
  publicKey: key,
  allowedIPs: ["10.10.0.2/32"],
  receivedBytes: 0,
  sentBytes: 0,
  ...more,
});
const at = (ageSeconds: number) => ({ latestHandshake: now - ageSeconds, receivedBytes: 9, sentBytes: 900 });
const judged = (seen: PeerStatus | undefined, history: PeerHistory = {}, endpoint?: string) =>
  judgePeer({}, { publicKey: key, ...(endpoint === undefined ? {} : { endpoint }) }, seen, history, now);

describe("why a peer is not heard", () => {
  const cases: readonly (readonly [why: string, PeerState, RegExp, ReturnType<typeof judged>])[] = [
    ["it answers", "up", /^$/, judged(status({ endpoint: "192.0.2.1:1", ...at(179) }))],
    [
      "a wrong key, or a dead peer: WireGuard says nothing to either",
      "silent",
      /no handshake ever with 192\.0\.2\.1:51820: a wrong key on either side/,
      judged(status({ endpoint: "192.0.2.1:51820", sentBytes: 148 })),
    ],
    [
      "a wrong key: the machine itself answers",
      "silent",
      /whose machine answers ping: a wrong key/,
      judged(status({ endpoint: "192.0.2.1:51820", sentBytes: 148 }), { answersPing: true }),
    ],
    [
      "a dead peer",
      "unreachable",
      /does not answer ping either/,
      judged(status({ endpoint: "192.0.2.1:51820", sentBytes: 148 }), { answersPing: false }),
    ],
    [
      "B037: its name does not resolve",
      "unresolved",
      /no address is known for 'hub\.example\.net'/,
      judged(status(), {}, "hub.example.net:51820"),
    ],
    ["it is behind NAT and has to call", "waiting", /waits for its call/, judged(status())],
    ["nothing was sent to it", "idle", /nothing was sent/, judged(status({ endpoint: "192.0.2.1:1" }))],
    [
      "the preshared keys differ: its first message is right, and ours is not",
      "unfinished",
      /preshared keys differ/,
      judged(status({ endpoint: "192.0.2.1:51820", receivedBytes: 444, sentBytes: 276 })),
    ],
    [
      "it died",
      "stale",
      /not heard for 10 min although this node sends to 192\.0\.2\.1:1$/,
      judged(status({ endpoint: "192.0.2.1:1", ...at(600) }), { sentAtLoss: 800 }),
    ],
    [
      "nobody uses the tunnel",
      "idle",
      /nothing is sent/,
      judged(status({ endpoint: "192.0.2.1:1", ...at(600) }), { sentAtLoss: 900 }),
    ],
    [
      "B041: the way carries less than the overlay takes",
      "narrow",
      /packets of 1420 bytes do not get through/,
      judged(status({ endpoint: "192.0.2.1:1", ...at(10) }), { takesFullSize: false }),
    ],
    [
      "the document gives this node its own key as a peer's: it was said that somebody had changed the interface",
      "missing",
      /its public key is this node's own/,
      judgePeer({ ownKey: key }, { publicKey: key }, undefined, {}, now),
    ],
    ["somebody took it off the interface", "missing", /the interface does not have it/, judged(undefined)],
  ];
  for (const [why, state, words, found] of cases) {
    test(why, () => {
      expect(found.state).toBe(state);
      expect(found.cause ?? "").toMatch(words);
    });
  }

  test("a peer that may be quiet troubles nobody, one that should answer does", () => {
    const quiet = new Set<PeerState>(["up", "idle", "waiting", "unknown"]);
    for (const [, state] of cases) expect(isTroubled(state)).toBe(!quiet.has(state));
  });
});

test("as wg shows it: heard just then, and not heard an hour later", () => {
  const [found] = parseWgDump(readFileSync(join(import.meta.dir, "testdata/wg-show-all-dump-up.txt"), "utf8"));
  const [peer] = found?.peers ?? [];
  if (peer?.latestHandshake === undefined) throw new Error("no handshake in the sample");
  expect(judgePeer({}, { publicKey: key }, peer, {}, peer.latestHandshake + 5).state).toBe("up");
  expect(judgePeer({}, { publicKey: key }, peer, { sentAtLoss: 0 }, peer.latestHandshake + 3600).state).toBe("stale");
});

test("a packet of full size goes to an address that only this peer has", () => {
  const overlay = { address: ["10.10.0.1/24", "fd10::1/64"] };
  expect(probeTarget(overlay, { allowedIPs: ["10.244.1.0/24", "192.0.2.7/32", "10.10.0.2/32"] })).toBe("10.10.0.2");
  expect(probeTarget(overlay, { allowedIPs: ["fd10::2/128"] })).toBe("fd10::2");
  expect(probeTarget(overlay, { allowedIPs: ["192.0.2.7/32"] })).toBe("192.0.2.7");
  expect(probeTarget(overlay, { allowedIPs: ["10.10.0.0/24", "0.0.0.0/0"] })).toBeUndefined();
});

test("a peer is called by the beginning of its key and its endpoint", () => {
  expect(peerName({ publicKey: key, endpoint: "hub.example.net:51820" })).toBe("STD2rTn0… (hub.example.net:51820)");
  expect(peerName({ publicKey: key })).toBe("STD2rTn0…");
});
