/** A root shell for tests on the second serial port, without a change to the image. */
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

const UNIT = `[Unit]
Description=root shell of the tests on ttyS1
DefaultDependencies=no
IgnoreOnIsolate=yes
[Service]
# Raw: no echo, no line limit. A loop, as a shell that reads a terminal prompts and edits lines.
ExecStart=/bin/sh -c 'stty raw -echo </dev/ttyS1; while IFS= read -r line; do eval "$$line"; done </dev/ttyS1 >/dev/ttyS1 2>/dev/null'
Environment=HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
WorkingDirectory=/
Restart=always
RestartSec=1
`;

const credential = (name: string, value: string): string =>
  `io.systemd.credential.binary:${name}=${Buffer.from(value).toString("base64")}`;

/**
 * SMBIOS OEM strings that make systemd (256 or later) start the shell: whoever owns the virtual machine's
 * firmware tables may add units (man systemd-debug-generator, man systemd.system-credentials).
 */
export const shellOemStrings = (): readonly string[] => [
  credential("systemd.extra-unit.test-shell.service", UNIT),
  credential("systemd.unit-dropin.sysinit.target~test-shell", "[Unit]\nWants=test-shell.service\n"),
];

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
            await exchange("rc=0", 2000);
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
