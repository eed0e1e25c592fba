import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

/** `script` gives the command a real terminal, `/dev/tty` is its name inside. */
test("on a real terminal it shows the node, answers a key, and ends when it is told to", async () => {
  const main = join(import.meta.dir, "..", "main.ts");
  const child = Bun.spawn(["script", "-qefc", `exec '${process.execPath}' '${main}' console /dev/tty`, "/dev/null"], {
    stdin: "pipe",
    stdout: "pipe",
    env: { ...process.env, TERM: "dumb" },
  });
  let text = "";
  let isOver = false;
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) text += decoder.decode(chunk).replaceAll("\r", "");
    isOver = true;
  })();
  const until = async (pattern: RegExp): Promise<void> => {
    for (let tries = 0; !pattern.test(text) && !isOver; tries++) {
      if (tries > 200) throw new Error(`never saw ${pattern} in: ${text}`);
      await Bun.sleep(50);
    }
    expect(text).toMatch(pattern);
  };
  try {
    await until(/phase: /);
    expect(text).not.toContain("\x1b");
    await until(/keys: l log/);
    void child.stdin.write("c\n");
    await until(/configuration: |api: .*\n[^]*api: /);
    void child.stdin.write("p\n");
    await until(/power:\n[^]*q to go back:/);
    void child.stdin.write("\x1b[A\n");
    await until(/power:\n[^]*power:\n/);
    void child.stdin.write("r\n");
    await until(/type: \S/);
    void child.stdin.write("no name of this machine\n");
    await until(/that is not \S+\nnothing was changed/);
    expect(isOver).toBe(false);
  } finally {
    child.kill();
    await child.exited;
    await reading;
  }
}, 20_000);
