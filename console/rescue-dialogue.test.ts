import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { FilesystemSeen, InstalledSystem, RescueSight } from "../supervisor/rescue.ts";
import type { Input } from "./dialogue.ts";
import type { RescueRequest, RescueTurn } from "./rescue-dialogue.ts";
import { beginRescue, stepRescue } from "./rescue-dialogue.ts";
import { readTyped } from "./typed.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const disk = "/dev/vda (no model, serial S1, 6 GiB)";
const system = (name: string, more: Partial<InstalledSystem> = {}): InstalledSystem => ({
  name,
  disk,
  device: "/dev/vda7",
  ...more,
});
const state: FilesystemSeen = { device: "/dev/vda7", what: "state", disk, isMounted: true };
const data: FilesystemSeen = { device: "/dev/vda8", what: "data", disk, isMounted: false };
const sight = (more: Partial<RescueSight> = {}): RescueSight => ({
  isLive: false,
  hostname: "n1",
  systems: [system("n1")],
  filesystems: [state, data],
  addresses: ["eth0 10.0.2.15/24"],
  problems: [],
  ...more,
});
const answer = (json: unknown): Input => ({ kind: "answer", answer: { ok: true, json } });

function script(inputs: readonly (string | Input)[], seen = sight()) {
  const requests: RescueRequest[] = [];
  let turn: RescueTurn = stepRescue({ at: "looking", before: [] }, answer(seen));
  for (const each of inputs) {
    if (turn.state === undefined) throw new Error("the menu never ends by itself");
    turn = stepRescue(turn.state, typeof each === "string" ? readTyped(each) : each);
    if (turn.request !== undefined) requests.push(turn.request);
  }
  return { turn, requests, changes: requests.filter(({ do: what }) => what !== "look" && what !== "volumes") };
}

describe("the rescue menu", () => {
  test("says what is there and what can be done, on one screen, with no shell among it", () => {
    const { lines } = script([], sight({ problems: ["e2fsck could not repair the data partition"] })).turn;
    expect(lines).toEqual([
      "Corium rescue menu",
      `system: n1 on ${disk}`,
      "address: eth0 10.0.2.15/24",
      "problem: e2fsck could not repair the data partition",
      "  k  re-key: the node shows a new claim code; its cluster is kept",
      "  x  reset: the node forgets what it is, and can be claimed anew",
      "  n  network: ask for addresses again",
      "  f  file systems: check and repair",
      "  u  unlock an encrypted volume",
      "  s  start the node",
      "  r  restart the machine",
      "  o  switch it off",
      "a letter, then Enter:",
    ]);
  });

  test("whatever changes something is done after the name was typed, and only then", () => {
    for (const [keys, words, request] of [
      [["k"], "n1", { do: "re-key", device: "/dev/vda7" }],
      [["x", "1"], "n1", { do: "reset", device: "/dev/vda7", isWipingDisks: false }],
      [["x", "2"], "n1", { do: "reset", device: "/dev/vda7", isWipingDisks: true }],
      [["n"], "n1", { do: "addresses" }],
      [["f", "2"], "vda8", { do: "repair", device: "/dev/vda8" }],
      [["s"], "n1", { do: "leave", way: "start" }],
      [["r"], "n1", { do: "leave", way: "reboot" }],
      [["o"], "n1", { do: "leave", way: "poweroff" }],
    ] as const) {
      expect(script(keys).turn.lines).toContain(`type: ${words}`);
      expect(script(keys).changes).toEqual([]);
      expect(script([...keys, words]).changes).toEqual([request]);
      for (const wrong of ["", "q", "\u001b", words.toUpperCase(), "yes", { kind: "timeout" } as const]) {
        expect([keys, wrong, script([...keys, wrong]).changes]).toEqual([keys, wrong, []]);
      }
    }
  });

  test("what came of it stands above the menu, also when it failed", () => {
    const done = script(["k", "n1", answer("SHA256:x"), answer(sight())]).turn.lines;
    expect(done[0]).toBe("re-keyed: started normally, it shows a new claim code on every console");
    const refused: Input = { kind: "answer", answer: { ok: false, lines: ["nobody has claimed this node"] } };
    expect(script(["k", "n1", refused, answer(sight())]).turn.lines.slice(0, 2)).toEqual([
      "nobody has claimed this node",
      "Corium rescue menu",
    ]);
    const repaired = script(["f", "2", "vda8", answer(["Pass 1", "repaired"]), answer(sight())]).turn.lines;
    expect(repaired.slice(0, 3)).toEqual(["Pass 1", "repaired", "/dev/vda8 was checked"]);
  });

  test("of several systems one is chosen by number; none, a broken one and a mounted file system are told", () => {
    const two = sight({ isLive: true, systems: [system("a"), system("b", { device: "/dev/vdb7" })] });
    expect(script(["k", "2"], two).turn.lines).toContain("type: b");
    expect(script(["k", "2", "b"], two).changes).toEqual([{ do: "re-key", device: "/dev/vdb7" }]);
    expect(script(["k", "3"], two).turn.lines[0]).toBe("re-key which one?");
    const said = (keys: readonly string[], seen: RescueSight): string | undefined =>
      script([...keys, answer(seen)], seen).turn.lines[0];
    expect(said(["k"], sight({ systems: [] }))).toBe("there is nothing to re-key");
    expect(said(["k"], sight({ systems: [system("a", { problem: "it holds linux_raid_member" })] }))).toBe(
      "a can't be re-keyed: it holds linux_raid_member",
    );
    expect(said(["f", "1"], sight())).toBe("/dev/vda7: mounted, checked before that");
  });

  test("a locked volume is opened with a key that is not shown; of several one is chosen by number", () => {
    const asked = script(["u", answer(["vault"])]).turn;
    expect([asked.isHidden, asked.lines[0]]).toEqual([
      true,
      expect.stringContaining("key of volume vault, which is not shown"),
    ]);
    const { changes, turn } = script(["u", answer(["vault"]), "a key", answer(["bound"]), answer(sight())]);
    expect(changes).toEqual([{ do: "unlock", name: "vault", key: "a key" }]);
    expect(turn.lines.slice(0, 2)).toEqual(["bound", "volume vault is open"]);
    expect(turn.lines.join()).not.toContain("a key");
    const two = ["u", answer(["vault", "attic"])] as const;
    expect(script(two).turn.isHidden).toBeUndefined();
    expect(script([...two, "2", "k"]).changes).toEqual([{ do: "unlock", name: "attic", key: "k" }]);
    expect(script([...two, "3", "k"]).changes).toEqual([]);
    expect(script(["u", answer([]), answer(sight())]).turn.lines[0]).toBe("no volume is locked");
    expect(script(["u", answer(["vault"]), "q"]).changes).toEqual([]);
  });

  test("a machine that can't be looked at still has a menu", () => {
    const blind: Input = { kind: "answer", answer: { ok: false, lines: ["lsblk failed"] } };
    const { state: next, lines } = stepRescue({ at: "looking", before: [] }, blind);
    expect([next?.at, lines.includes("problem: lsblk failed")]).toEqual(["menu", true]);
  });

  test("silence and noise in the menu print nothing; noise anywhere never asks for a change", () => {
    expect(script([{ kind: "timeout" }, "\u001b[24;80R"]).turn.lines).toEqual([]);
    const noise = fc.oneof(
      fc.constantFrom("k", "n", "f", "u", "s", "r", "o", "1", "2", "q"),
      fc.string({ unit: "binary" }),
    );
    fc.assert(
      fc.property(fc.array(noise, { maxLength: 25 }), (lines) => {
        let turn: RescueTurn = beginRescue();
        for (const line of lines) {
          if (turn.request?.do === "look" && turn.state !== undefined) turn = stepRescue(turn.state, answer(sight()));
          if (turn.request?.do === "volumes" && turn.state !== undefined) turn = stepRescue(turn.state, answer(["v"]));
          const isKeyAsked = turn.state?.at === "key";
          if (turn.state === undefined) throw new Error("the menu never ends by itself");
          turn = stepRescue(turn.state, readTyped(line));
          for (const shown of turn.lines) expect(shown).toMatch(/^[ -~]{0,80}$/);
          const what = turn.request?.do;
          if (what === "unlock") expect(isKeyAsked).toBe(true);
          else if (what !== undefined && what !== "look" && what !== "volumes")
            expect(line.trim()).toMatch(/^(n1|vda8)$/);
          if (turn.state?.at === "sent") return;
        }
      }),
    );
  });
});
