import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { InstallOffer, InstallOffersAnswer } from "../api/contract.ts";
import type { Input } from "./dialogue.ts";
import { COLUMNS } from "./frame.ts";
import type { InstallTurn } from "./install-dialogue.ts";
import { beginInstall, stepInstall } from "./install-dialogue.ts";
import type { ApiRequest } from "./request.ts";
import { readTyped } from "./typed.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const offer = (serial: string, more: Partial<InstallOffer> = {}): InstallOffer => ({
  path: `/dev/${serial.toLowerCase()}`,
  sizeBytes: 6_442_450_944,
  model: "QEMU HARDDISK",
  serial,
  ref: { serial },
  isAccepted: true,
  consent: "none",
  content: "",
  reason: "",
  ...more,
});
const blank = offer("BLANK1");
const full = offer("FULL2", { consent: "wipe", content: 'ext4 "photos" on the whole disk at 0x438' });
const small = offer("SMALL3", {
  isAccepted: false,
  reason: "the disk is too small: needed 5 GiB, found 1073741824 bytes",
});
const corium = offer("OURS4", { consent: "wipe-own", content: "gpt on the whole disk" });
const offers: InstallOffersAnswer = { disks: [blank, full, small, corium], canMirror: false };
const lookedAt = (answer: InstallOffersAnswer = offers): Input => ({
  kind: "answer",
  answer: { ok: true, json: answer },
});

/** Types the lines one after the other; each request is kept, and answered from `answers`. */
function script(lines: readonly (string | Input)[], first: Input = lookedAt()) {
  const requests: ApiRequest[] = [];
  const frames: (readonly string[])[] = [];
  const take = (turn: InstallTurn): InstallTurn => {
    frames.push(turn.lines);
    if (turn.request !== undefined) requests.push(turn.request);
    return turn;
  };
  let turn = take(beginInstall());
  for (const each of [first, ...lines]) {
    if (turn.state === undefined) throw new Error(`it was over before ${JSON.stringify(each)}`);
    turn = take(stepInstall(turn.state, typeof each === "string" ? readTyped(each) : each));
  }
  return { isOver: turn.state === undefined, state: turn.state, last: turn.lines, frames, requests };
}
const posted = (requests: readonly ApiRequest[]) => requests.filter(({ method }) => method === "POST");

describe("installing from the console", () => {
  test("what each disk is, holds, and why one is not accepted, in exact bytes", () => {
    expect(script([]).last).toEqual([
      "install Corium; disks of this machine:",
      " 1  /dev/blank1  6442450944 bytes (6 GiB)  QEMU HARDDISK  serial BLANK1",
      "    blank",
      " 2  /dev/full2  6442450944 bytes (6 GiB)  QEMU HARDDISK  serial FULL2",
      '    holds data, which will be lost: ext4 "photos" on the whole disk at 0x438',
      " 3  /dev/small3  6442450944 bytes (6 GiB)  QEMU HARDDISK  serial SMALL3",
      "    not accepted: the disk is too small: needed 5 GiB, found 1073741824 bytes",
      " 4  /dev/ours4  6442450944 bytes (6 GiB)  QEMU HARDDISK  serial OURS4",
      "    holds an installed Corium, which will be lost with all it kept",
      "number of the disk to install on, q to go back:",
    ]);
  });

  test("a blank disk: its serial is typed, and the node is asked with it", () => {
    const { last, requests } = script(["1"]);
    expect(last).toEqual([
      "install Corium on this disk:",
      "  /dev/blank1  6442450944 bytes (6 GiB)  QEMU HARDDISK  serial BLANK1",
      "nothing is on it that could be lost",
      "then the machine restarts from it",
      "type: BLANK1",
      "(or q to go back)",
    ]);
    expect(posted(requests)).toEqual([]);
    const sent = script(["1", "BLANK1"]);
    expect(posted(sent.requests)).toEqual([
      { method: "POST", path: "/v1/install", body: { disk: { serial: "BLANK1" } } },
    ]);
    const end = script(["1", "BLANK1", { kind: "answer", answer: { ok: true, json: { installing: true } } }]);
    expect(end.isOver).toBe(true);
  });

  test("data is lost by the word wipe only, an installed Corium by wipe-own only", () => {
    for (const wrong of ["FULL2", "wipe", "yes", "wipe full2", "wipe BLANK1", "wipe-own FULL2"]) {
      const { isOver, last, requests } = script(["2", wrong]);
      expect([isOver, last.at(-1), posted(requests)]).toEqual([true, "nothing was changed", []]);
    }
    expect(posted(script(["2", "wipe  FULL2"]).requests)[0]?.body).toEqual({ disk: { serial: "FULL2" }, wipe: true });
    expect(posted(script(["4", "wipe OURS4"]).requests)).toEqual([]);
    expect(posted(script(["4", "wipe-own OURS4"]).requests)[0]?.body).toEqual({
      disk: { serial: "OURS4" },
      wipe: true,
      wipeOwn: true,
    });
  });

  test("a disk that is not accepted, or a number that is none, asks again and says why", () => {
    for (const [typed, why] of [
      ["3", "disk 3 is not accepted: the disk is too small: needed 5 GiB, found 1073741824"],
      ["9", "that is no number of this list"],
      ["0", "that is no number of this list"],
      ["/dev/full2", "that is no number of this list"],
      ["", "that is no number of this list"],
    ] as const) {
      const { isOver, last } = script([typed]);
      expect([isOver, last.includes(why)]).toEqual([false, true]);
    }
  });

  test("q, Escape and silence leave everything as it was, at every question", () => {
    for (const before of [[], ["1"], ["2"]]) {
      for (const cancel of ["q", "Q", "\u001b", { kind: "timeout" } as const]) {
        const { isOver, last, requests } = script([...before, cancel]);
        expect([isOver, last, posted(requests)]).toEqual([true, ["nothing was changed"], []]);
      }
    }
  });

  test("with a release that mirrors, a second disk or none; both names are typed", () => {
    const mirrored = { ...offers, canMirror: true };
    expect(posted(script(["1", "-", "BLANK1"], lookedAt(mirrored)).requests)[0]?.body).toEqual({
      disk: { serial: "BLANK1" },
    });
    const { requests, frames } = script(["1", "2", "wipe BLANK1 FULL2"], lookedAt(mirrored));
    expect(frames.at(-2)).toContain("type: wipe BLANK1 FULL2");
    expect(posted(requests)[0]?.body).toEqual({ disk: { serial: "BLANK1" }, mirror: { serial: "FULL2" }, wipe: true });
    expect(script(["1", "1"], lookedAt(mirrored)).last).toContain("that is the disk itself; name another one, or -");
  });

  test("a refusal of the node is shown, and an answer that never comes ends it", () => {
    const refusal: Input = { kind: "answer", answer: { ok: false, lines: ["refused: the node is being provisioned"] } };
    expect(script(["1", "BLANK1", refusal]).last).toEqual([
      "refused: the node is being provisioned",
      "nothing was changed",
    ]);
    expect(script([], refusal).isOver).toBe(true);
    expect(script([], lookedAt({ disks: [], canMirror: false })).last[0]).toBe("no disk was found at all");
  });

  test("forty disks are shown page by page, each page on one screen", () => {
    const reason = "its serial is also that of ".repeat(20);
    const many = Array.from({ length: 40 }, (_, at) => offer(`D${at}`, { isAccepted: at > 30, reason }));
    const answer = lookedAt({ disks: many, canMirror: false });
    let lines: string[] = [];
    for (let page = 0; page < 7; page++) {
      const { last } = script(
        Array.from({ length: page }, () => "m"),
        answer,
      );
      expect(last.length).toBeLessThanOrEqual(23);
      expect(last.every((line) => line.length <= COLUMNS)).toBe(true);
      lines = [...lines, ...last.filter((line) => line.includes("serial D"))];
    }
    expect(lines).toHaveLength(40);
    expect(
      script(
        Array.from({ length: 7 }, () => "m"),
        answer,
      ).last,
    ).toEqual(script([], answer).last);
  });

  test("whatever is pasted or comes as noise: without the typed words nothing is ever asked for", () => {
    const noise = fc.oneof(
      fc.constantFrom("1", "2", "4", "m", "-", "wipe", "i", "\u001b[A"),
      fc.string({ unit: "binary" }),
    );
    fc.assert(
      fc.property(fc.array(noise, { maxLength: 30 }), (lines) => {
        let turn: InstallTurn = stepInstall({ at: "looking" }, lookedAt());
        for (const line of lines) {
          if (turn.state === undefined) break;
          turn = stepInstall(turn.state, readTyped(line));
          for (const shown of turn.lines) expect(shown).toMatch(/^[ -~]{0,80}$/);
          if (turn.request !== undefined) expect(line.trim()).toMatch(/^(BLANK1|wipe +FULL2|wipe-own +OURS4)$/);
        }
      }),
    );
  });
});
