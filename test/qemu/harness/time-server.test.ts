import { expect, test } from "bun:test";
import { answerTime } from "./time-server.ts";

function request(first: number): Uint8Array {
  const packet = new Uint8Array(48);
  packet[0] = first;
  packet.set([1, 2, 3, 4, 5, 6, 7, 8], 40);
  return packet;
}

test("an answer holds the time, and the client's own time stamp by which it knows the answer", () => {
  const answer = answerTime(request(0x23), 1_500) as Uint8Array;
  const view = new DataView(answer.buffer);
  expect(answer[0]).toBe(0x24);
  expect(answer[1]).toBe(2);
  expect([...answer.subarray(24, 32)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(view.getUint32(40)).toBe(2_208_988_801);
  expect(view.getUint32(44)).toBe(2 ** 31);
});

test("what is no request of a client gets no answer", () => {
  expect(answerTime(request(0x24), 0)).toBeUndefined();
  expect(answerTime(request(0x0b), 0)).toBeUndefined();
  expect(answerTime(new Uint8Array(47).fill(0x23), 0)).toBeUndefined();
});
