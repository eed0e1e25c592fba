/**
 * The terminal itself: an open device, lines that a person types, text that goes out. The only file of the console
 * that touches the machine: a terminal is no port of the Host, only this entry point has one.
 */
import type { CommandIo } from "../kit/command.ts";
import { closeSync, constants, createReadStream, openSync, write } from "node:fs";
import { createInterface } from "node:readline";

export interface Tty {
  /** Virtual consoles understand cursor control; of a serial line nobody knows what is at its other end. */
  readonly isScreen: boolean;
  readonly path: string;
  /** Resolves when the device took it; a stalled line blocks its own console only. */
  write(text: string): Promise<void>;
  onLine(listener: (line: string) => void): void;
  close(): void;
}

/** `tty1`, `ttyS0`, `hvc0`, or a path. */
export function openTty(name: string, term: string | undefined): Tty {
  const path = name.startsWith("/") ? name : `/dev/${name}`;
  // Not our controlling terminal: a hang-up of the line must not end the process.
  const fd = openSync(path, constants.O_RDWR | constants.O_NOCTTY);
  const input = createReadStream("", { fd, autoClose: false });
  // A line that hangs up ends the input; the unit restarts the console.
  input.on("error", () => input.destroy());
  const lines = createInterface({ input });
  return {
    path,
    isScreen: /^tty\d+$/.test(name) && term !== "dumb",
    write: (text) => writeAll(fd, Buffer.from(text, "latin1")),
    onLine: (listener) => void lines.on("line", listener),
    close: () => {
      lines.close();
      closeSync(fd);
    },
  };
}

/** A terminal takes as much as it has room for. */
function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (offset: number): void => {
      if (offset >= bytes.length) return resolve();
      write(fd, bytes, offset, (error, written) => (error === null ? next(offset + written) : reject(error)));
    };
    next(0);
  });
}

/** Opens it, and closes it whatever happens; the exit status of a command that lives on one. */
export async function onTty(name: string, io: CommandIo, use: (tty: Tty) => Promise<void>): Promise<number> {
  let tty: Tty;
  try {
    tty = openTty(name, io.env["TERM"]);
  } catch (error) {
    io.err(`corium: cannot open ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  try {
    await use(tty);
  } finally {
    tty.close();
  }
  return 0;
}
