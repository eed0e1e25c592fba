import { describe, expect, test } from "bun:test";
import type { PeerStatus } from "./model.ts";
import type { OverlayMemory, PeerProbe, WatchedOverlay } from "./watch.ts";
import { decide, isUnanswered, pingArgv, withAnswer } from "./watch.ts";

const key = "STD2rTn0C9aHb+DNkcYnXFbNPo2gHX9/sCGGnafboTE=";
const start = 1_800_000_000;
const spec: WatchedOverlay = {
  name: "wg0",
  address: ["10.10.0.1/24"],
  peers: [{ publicKey: key, endpoint: "192.0.2.1:51820", allowedIPs: ["10.10.0.2/32"] }],
};

interface Seen {
  readonly atSeconds: number;
  /** Absent: never. */
  readonly heardAt?: number;
  readonly sent?: number;
}

/** Look after look; every probe gets this answer. */
function live(
  looks: readonly Seen[],
  answer: (probe: PeerProbe) => boolean | undefined = () => undefined,
  specs: readonly WatchedOverlay[] = [spec],
) {
  let memory: OverlayMemory = [];
  const events: string[] = [];
  const probes: string[] = [];
  for (const { atSeconds, heardAt, sent = 148 } of looks) {
    const peer: PeerStatus = {
      publicKey: key,
      endpoint: "192.0.2.1:51820",
      allowedIPs: ["10.10.0.2/32"],
      ...(heardAt === undefined ? {} : { latestHandshake: start + heardAt }),
      receivedBytes: heardAt === undefined ? 0 : 92,
      sentBytes: sent,
    };
    const decided = decide(memory, specs, [{ name: "wg0", peers: [peer] }], start + atSeconds);
    memory = decided.memory;
    events.push(...decided.events.map(({ severity, message }) => `${atSeconds} ${severity}: ${message}`));
    for (const probe of decided.probes) {
      probes.push(`${atSeconds} ${probe.kind} ${probe.target} ${probe.bytes}`);
      memory = withAnswer(memory, probe, answer(probe), start + atSeconds);
    }
  }
  return { memory, events, probes };
}

describe("what is said", () => {
  test("a peer that comes is said at once, one that is silent at the second look, each once", () => {
    const { events } = live([
      { atSeconds: 0 },
      { atSeconds: 30 },
      { atSeconds: 60 },
      { atSeconds: 90, heardAt: 85 },
      { atSeconds: 120, heardAt: 85 },
    ]);
    expect(events).toEqual([
      "30 warning: overlay wg0: peer STD2rTn0… (192.0.2.1:51820): no handshake ever with 192.0.2.1:51820: a wrong key on either side, another port, or something on the way drops it",
      "90 info: overlay wg0: peer STD2rTn0… (192.0.2.1:51820) is heard",
    ]);
  });

  test("a peer that dies is said with what its machine says to ping, and again when it is back", () => {
    const { events, probes } = live(
      [
        { atSeconds: 0, heardAt: -5, sent: 100 },
        { atSeconds: 200, heardAt: -5, sent: 500 },
        { atSeconds: 230, heardAt: -5, sent: 648 },
        { atSeconds: 260, heardAt: -5, sent: 796 },
        { atSeconds: 290, heardAt: 285, sent: 900 },
      ],
      ({ kind }) => kind !== "ping",
    );
    expect(events).toEqual([
      "0 info: overlay wg0: peer STD2rTn0… (192.0.2.1:51820) is heard",
      "260 warning: overlay wg0: peer STD2rTn0… (192.0.2.1:51820): not heard for 4 min although this node sends to 192.0.2.1:51820, whose machine does not answer ping either",
      "290 info: overlay wg0: peer STD2rTn0… (192.0.2.1:51820) is heard",
    ]);
    expect(probes).toEqual(["0 size 10.10.0.2 1420", "230 ping 192.0.2.1 1420", "290 size 10.10.0.2 1420"]);
  });

  test("a tunnel that nobody uses is no event, however long", () => {
    const looks = Array.from({ length: 50 }, (_, at) => ({ atSeconds: at * 30, heardAt: 0, sent: 500 }));
    expect(live(looks).events).toHaveLength(1);
  });

  test("B041: packets that are too large for the way are said, and that it is mended too", () => {
    let fits = false;
    const looks = [0, 30, 60, 90, 330, 360, 390].map((atSeconds) => ({ atSeconds, heardAt: atSeconds }));
    const { events } = live(looks, ({ kind }) => {
      const answer = kind === "size" ? fits : undefined;
      fits = true;
      return answer;
    });
    expect(events.map((line) => line.replace(/ overlay wg0: peer \S+ \(\S+\)/, ""))).toEqual([
      "0 info: is heard",
      "60 warning:: packets of 1420 bytes do not get through, small ones do: a link on the way carries less; a smaller mtu for the overlay on both sides",
      "360 info: is heard",
    ]);
  });

  test("before the interface is there nothing is said of its peers", () => {
    expect(decide([], [spec], [], start)).toEqual({ memory: [], probes: [], events: [] });
  });
});

describe("what is asked", () => {
  test("at long intervals, not at each look", () => {
    const day = Array.from({ length: 2_880 }, (_, at) => ({ atSeconds: at * 30, heardAt: at * 30 }));
    expect(live(day, () => true).probes).toHaveLength(48);
    const dead = Array.from({ length: 2_880 }, (_, at) => ({ atSeconds: at * 30, sent: 148 * (at + 1) }));
    expect(live(dead, () => false).probes).toHaveLength(144);
  });

  test("a hundred peers that come at once are asked one after another", () => {
    const peers = Array.from({ length: 100 }, (_, at) => ({ publicKey: `${at}`, allowedIPs: [`10.10.0.${at}/32`] }));
    const interfaces = [
      {
        name: "wg0",
        peers: peers.map((peer) => ({ ...peer, latestHandshake: start, receivedBytes: 1, sentBytes: 1 })),
      },
    ];
    expect(decide([], [{ ...spec, peers }], interfaces, start).probes).toHaveLength(4);
  });

  test("no answer to small packets either says nothing about large ones", () => {
    const { memory } = live([{ atSeconds: 0, heardAt: 0 }]);
    expect(memory[0]).toMatchObject({ seen: "up", sizedAt: start });
    expect(memory[0]?.takesFullSize).toBeUndefined();
  });

  test("the packet has the overlay's size with all its headers, and may not be broken up", () => {
    const small = "ping -nq -c2 -W2";
    expect(pingArgv("10.10.0.2", { device: "wg0", bytes: 1420 }).join(" ")).toBe(
      `${small} -Mdo -s1392 -Iwg0 10.10.0.2`,
    );
    expect(pingArgv("fd10::2", { device: "wg0", bytes: 1420 }).join(" ")).toBe(`${small} -Mdo -s1372 -Iwg0 fd10::2`);
    expect(pingArgv("192.0.2.1").join(" ")).toBe(`${small} 192.0.2.1`);
  });
});

test("only what is sent and not answered is a reason to try another address", () => {
  const peer: PeerStatus = { publicKey: key, allowedIPs: [], receivedBytes: 0, sentBytes: 500 };
  expect(isUnanswered({}, peer)).toBe(true);
  expect(isUnanswered({}, { ...peer, sentBytes: 0 })).toBe(false);
  const heard = { ...peer, latestHandshake: start };
  expect(isUnanswered({ sentAtLoss: 500 }, heard)).toBe(false);
  expect(isUnanswered({ sentAtLoss: 400 }, heard)).toBe(true);
});
