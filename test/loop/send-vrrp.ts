/** `send-vrrp.ts ID`: announces virtual router ID on eth0 each half second, with both families, as keepalived does each second. */
import { dlopen, ptr } from "bun:ffi";

const libc = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
  if_nametoindex: { args: ["ptr"], returns: "u32" },
}).symbols;

const device = new TextEncoder().encode("eth0\0");
const index = new Uint8Array(new Int32Array([libc.if_nametoindex(ptr(device))]).buffer);
const id = Number(process.argv[2]);

function sender(family: number, group: Uint8Array, message: Uint8Array): () => void {
  const socket = libc.socket(family, 3, 112);
  libc.setsockopt(socket, 1, 25, ptr(device), device.length);
  return () => void libc.sendto(socket, ptr(message), message.length, 0, ptr(group), group.length);
}

const four = sender(
  2,
  Uint8Array.from([2, 0, 0, 0, 224, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0, 0]),
  Uint8Array.from([0x21, id, 200, 1, 1, 1, 0, 0, 10, 0, 0, 50]),
);
const allRouters = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12];
const six = sender(
  10,
  Uint8Array.from([10, 0, 0, 0, 0, 0, 0, 0, ...allRouters, ...index]),
  Uint8Array.from([0x31, id, 200, 1, 0, 100, 0, 0]),
);
for (;;) {
  four();
  six();
  process.stdout.write("sent\n");
  await Bun.sleep(500);
}
