/** One serial port of a VM: everything it printed, waiting for a line, typing into it. */
import { createConnection, type Socket } from "node:net";

export interface ExpectOptions {
  /** Look at everything printed so far, not only at what came after the last match. */
  readonly fromStart?: boolean;
  /** Fails at once when this is printed, e.g. a panic while waiting for a login. */
  readonly unless?: RegExp;
}

export interface Serial {
  /** All that was printed, without terminal escapes and carriage returns. */
  text(): string;
  tail(lines?: number): string;
  /** Waits for the pattern after the last match; the failure shows the tail of the port. */
  expect(pattern: RegExp, timeoutMs: number, options?: ExpectOptions): Promise<RegExpExecArray>;
  send(text: string): void;
  /** Forget what was printed until now: the next `expect` sees only what comes. */
  skip(): void;
  close(): void;
}

interface Waiter {
  readonly test: () => boolean;
  readonly fail: (reason: string) => void;
}

const PANIC = /Kernel panic - not syncing[^\n]*/;

/**
 * What QEMU's emulator (not KVM) sometimes does to a guest's kernel. No program of a guest can cause it, and no real processor
 * does it:
 *
 * - A virtual processor runs the breakpoint by which another one, patching the kernel's code (arch/x86/kernel/alternative.c,
 *   text_poke_bp), had kept it away until a moment ago. Linux then finds nobody who set it.
 * - The flags of a processor hold an operand of the instruction before. Bits 22 to 31 of EFLAGS are never set (Intel SDM 1,
 *   3.4.3), so that a kernel which prints some has not come there by itself.
 */
export const EMULATOR_FLAW = /Oops: int3: 0000 |EFLAGS: (?!00[0-3])[0-9a-f]{8}\b/;

/** Said by a test whose machine was ended for it: the runner takes such a file once more. */
export const EMULATOR_FLAW_SAID = "QEMU's emulator broke this machine: it was ended";

/** Escapes may be cut by a chunk's end: `rest` is put in front of the next chunk. */
export function stripTerminal(input: string): { readonly text: string; readonly rest: string } {
  // An escape that is not over yet: ESC, or ESC [ and parameters.
  // oxlint-disable-next-line no-control-regex
  const open = /\x1b(?:\[[0-9;?]*)?$/.exec(input);
  const whole = open === null ? input : input.slice(0, open.index);
  const text = whole
    // oxlint-disable-next-line no-control-regex
    .replace(/\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_a-z=>78])/g, "")
    .replaceAll("\r", "");
  return { text, rest: open === null ? "" : open[0] };
}

export async function openSerial(path: string, name: string, onEmulatorFlaw?: () => void): Promise<Serial> {
  const socket = await connectUnix(path);
  return attachSerial(socket, name, onEmulatorFlaw);
}

/** `onEmulatorFlaw` is called once. */
export function attachSerial(socket: Socket, name: string, onEmulatorFlaw?: () => void): Serial {
  const decoder = new TextDecoder("utf-8");
  const waiters = new Set<Waiter>();
  let text = "";
  let rest = "";
  let cursor = 0;
  let isClosed = false;
  let isBroken = false;

  socket.on("data", (chunk: Buffer) => {
    const stripped = stripTerminal(rest + decoder.decode(chunk, { stream: true }));
    rest = stripped.rest;
    const before = text.length;
    text += stripped.text;
    // The line may come in pieces, but not in small ones.
    if (!isBroken && EMULATOR_FLAW.test(text.slice(Math.max(0, before - 100)))) {
      isBroken = true;
      onEmulatorFlaw?.();
    }
    for (const waiter of waiters) if (waiter.test()) waiters.delete(waiter);
  });
  const end = (): void => {
    isClosed = true;
    for (const waiter of waiters) waiter.fail("the machine is gone");
    waiters.clear();
  };
  socket.on("close", end);
  socket.on("error", end);

  const tail = (lines = 40): string => text.trimEnd().split("\n").slice(-lines).join("\n");
  return {
    text: () => text,
    tail,
    skip: () => {
      cursor = text.length;
    },
    send: (input) => {
      socket.write(input);
    },
    close: () => {
      socket.destroy();
    },
    expect: (pattern, timeoutMs, options = {}) => {
      const flags = pattern.flags.replaceAll(/[gy]/g, "");
      const wanted = new RegExp(pattern.source, `${flags}g`);
      const unless = options.unless ?? PANIC;
      const from = options.fromStart === true ? 0 : cursor;
      const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
      const failure = (reason: string): Error =>
        new Error(
          `${name}: ${reason} while waiting for ${String(pattern)}; the last lines:\n` +
            tail()
              .split("\n")
              .map((line) => `  | ${line}`)
              .join("\n"),
        );
      const fail = (reason: string): void => {
        clearTimeout(timer);
        reject(failure(reason));
      };
      const timer = setTimeout(() => {
        waiters.delete(waiter);
        reject(failure(`nothing for ${timeoutMs / 1000} s`));
      }, timeoutMs);
      const test = (): boolean => {
        wanted.lastIndex = from;
        const match = wanted.exec(text);
        if (match !== null) {
          cursor = Math.max(cursor, match.index + match[0].length);
          clearTimeout(timer);
          resolve(match);
          return true;
        }
        const bad = unless.exec(text.slice(from));
        if (bad !== null) fail(`saw "${bad[0]}"`);
        return bad !== null;
      };
      const waiter: Waiter = { test, fail };
      if (!test()) {
        if (isClosed) fail("the machine is gone");
        else waiters.add(waiter);
      }
      return promise;
    },
  };
}

/** QEMU makes its sockets a moment after it was started. */
export async function connectUnix(path: string, timeoutMs = 20_000, isGone = (): boolean => false): Promise<Socket> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const attempt = Promise.withResolvers<Socket>();
    const socket = createConnection(path);
    socket.once("connect", () => {
      attempt.resolve(socket);
    });
    socket.once("error", attempt.reject);
    try {
      return await attempt.promise;
    } catch (error) {
      if (performance.now() > deadline || isGone())
        throw new Error(`no connection to ${path}: ${String(error)}`, { cause: error });
      await Bun.sleep(50);
    }
  }
}
