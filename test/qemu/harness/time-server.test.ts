import { expect, test } from "bun:test";
import { answerTo, timeServerOemString } from "./time-server.ts";

test("a client's question is answered with the time, its own stamp, and a stratum that is believed", () => {
  const question = new Uint8Array(48);
  question[0] = 0x23;
  question.set([1, 2, 3, 4, 5, 6, 7, 8], 40);
  const answer = answerTo(question, Date.UTC(2026, 0, 1) + 500) ?? new Uint8Array();
  const view = new DataView(answer.buffer);
  expect([answer[0], answer[1]]).toEqual([0x24, 1]);
  expect([...answer.subarray(24, 32)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect((view.getUint32(40) - 2_208_988_800) * 1000).toBe(Date.UTC(2026, 0, 1));
  expect(view.getUint32(44)).toBe(2 ** 31);
});

test("what is no question is not answered", () => {
  expect(answerTo(new Uint8Array(47), 0)).toBeUndefined();
  expect(answerTo(new Uint8Array(48), 0)).toBeUndefined();
});

test("the drop-in writes both lines", () => {
  const text = Buffer.from(timeServerOemString().split("=")[1] ?? "", "base64").toString("utf8");
  expect(text).toContain(String.raw`printf "[Time]\nNTP=10.0.2.2\n"`);
});
