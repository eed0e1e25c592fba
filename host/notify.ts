import { dlopen, ptr } from "bun:ffi";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const SUN_PATH_BYTES = 108;

/** `READY=1`, `WATCHDOG=1`, `STATUS=…` to systemd (sd_notify(3)). */
export type Notify = (state: string) => void;

/**
 * node:dgram knows no Unix datagrams and `systemd-notify` would be another process each few seconds, so libc is
 * called. Without a socket (not under systemd) it does nothing.
 */
export function realNotify(socketPath: string | undefined): Notify {
  if (socketPath === undefined || socketPath === "") return () => {};
  const libc = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
  const path = new TextEncoder().encode(socketPath);
  const address = new Uint8Array(2 + SUN_PATH_BYTES);
  address[0] = AF_UNIX;
  address.set(path.subarray(0, SUN_PATH_BYTES - 1), 2);
  // `@name` is an abstract socket: its first byte is zero, and its length is exact.
  const isAbstract = socketPath.startsWith("@");
  if (isAbstract) address[2] = 0;
  const addressBytes = 2 + path.length + (isAbstract ? 0 : 1);

  return (state) => {
    const message = new TextEncoder().encode(state);
    const socket = libc.symbols.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
    if (socket < 0) return;
    libc.symbols.sendto(socket, ptr(message), message.length, 0, ptr(address), addressBytes);
    libc.symbols.close(socket);
  };
}
