/**
 * A root shell for tests on the second serial port: of an image built with `--dev-shell` (bash on a terminal), or of
 * the mini guest.
 */
import type { Serial } from "./serial.ts";

export interface ShellResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Shell {
  /** Until the guest's shell answers; again after each reboot. */
  waitReady(timeoutMs: number): Promise<void>;
  /** Runs a script by sh with no input; the exit status is that of its last command. */
  run(script: string, timeoutMs?: number): Promise<ShellResult>;
  /** As `run`, but a failure throws with all it printed; gives stdout without the last newline. */
  must(script: string, timeoutMs?: number): Promise<string>;
}

/** The tty's buffer is 4096 bytes and nothing holds the sender back: longer scripts go in pieces. */
const PIECE = 1500;

export function attachShell(serial: Serial, name: string): Shell {
  let last: Promise<unknown> = Promise.resolve();
  let counter = 0;

  async function exchange(line: string, timeoutMs: number): Promise<string> {
    const id = `t${process.pid}x${++counter}`;
    serial.skip();
    // The sum keeps an echoed command line from passing for its answer.
    serial.send(`${line}\necho; echo "${id}:$((40+2)):$rc:"\n`);
    const match = await serial.expect(new RegExp(`([\\s\\S]*?)\\n${id}:42:(\\d*):`), timeoutMs);
    return `${match[2] ?? ""}\n${match[1] ?? ""}`;
  }

  async function runNow(script: string, timeoutMs: number): Promise<ShellResult> {
    const encoded = Buffer.from(script).toString("base64");
    for (let at = 0; at < encoded.length || at === 0; at += PIECE)
      await exchange(`printf %s '${encoded.slice(at, at + PIECE)}' ${at === 0 ? ">" : ">>"}/run/.t64; rc=$?`, 30_000);
    const answer = await exchange(
      "base64 -d </run/.t64 >/run/.t; sh /run/.t >/run/.to 2>/run/.te </dev/null; rc=$?; " +
        "echo '<<'; base64 </run/.to; echo '--'; base64 </run/.te; echo '>>'",
      timeoutMs,
    );
    const [code = "", ...rest] = answer.split("\n");
    const body = /<<\n([\s\S]*)--\n([\s\S]*)>>/.exec(rest.join("\n"));
    if (body === null || code === "") throw new Error(`${name}: the shell answered something else:\n${answer}`);
    const decode = (text = ""): string => Buffer.from(text.replaceAll(/\s/g, ""), "base64").toString();
    return { exitCode: Number(code), stdout: decode(body[1]), stderr: decode(body[2]) };
  }

  /** One command at a time: the port is one stream. */
  function queue<T>(work: () => Promise<T>): Promise<T> {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  }

  const run: Shell["run"] = (script, timeoutMs = 60_000) => queue(() => runNow(script, timeoutMs));
  return {
    run,
    waitReady: (timeoutMs) =>
      queue(async () => {
        const deadline = performance.now() + timeoutMs;
        for (;;) {
          try {
            // No echo, no line limit, no carriage returns.
            await exchange("stty raw -echo 2>/dev/null; PS1=; rc=0", 2000);
            return;
          } catch (error) {
            if (performance.now() > deadline || String(error).includes("the machine is gone"))
              throw new Error(`${name}: no root shell on ttyS1 within ${timeoutMs / 1000} s`, { cause: error });
          }
        }
      }),
    must: async (script, timeoutMs) => {
      const result = await run(script, timeoutMs);
      if (result.exitCode !== 0)
        throw new Error(`${name}: exit ${result.exitCode} of: ${script}\n${result.stdout}${result.stderr}`);
      return result.stdout.replace(/\n$/, "");
    },
  };
}
