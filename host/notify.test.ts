import { expect, test } from "bun:test";
import { dlopen, ptr } from "bun:ffi";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { realNotify } from "./notify.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const MSG_DONTWAIT = 0x40;

const libc = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
  close: { args: ["i32"], returns: "i32" },
}).symbols;

/** What systemd would receive at this address. */
function receive(path: string, send: () => void): string {
  const name = new TextEncoder().encode(path.startsWith("@") ? `\0${path.slice(1)}` : `${path}\0`);
  const address = new Uint8Array([AF_UNIX, 0, ...name]);
  const socket = libc.socket(AF_UNIX, SOCK_DGRAM, 0);
  expect(libc.bind(socket, ptr(address), address.length)).toBe(0);
  send();
  const buffer = new Uint8Array(256);
  const length = Number(libc.recv(socket, ptr(buffer), buffer.length, MSG_DONTWAIT));
  libc.close(socket);
  return new TextDecoder().decode(buffer.subarray(0, Math.max(length, 0)));
}

test("systemd hears READY=1 on a socket in a folder and on an abstract one", () => {
  const folder = mkdtempSync(join(tmpdir(), "corium-notify-"));
  const path = join(folder, "notify");
  expect(receive(path, () => realNotify(path)("READY=1"))).toBe("READY=1");
  rmSync(folder, { recursive: true });
  const abstract = `@corium-test-${process.pid}`;
  expect(receive(abstract, () => realNotify(abstract)("WATCHDOG=1"))).toBe("WATCHDOG=1");
});

test("without a socket, and with one that nobody listens on, nothing happens", () => {
  realNotify(undefined)("READY=1");
  realNotify("/nowhere/at/all")("READY=1");
});
