/** `corium console TTY`: the screen of a node on one terminal. Changes nothing; what it shows anybody in front of it may see. */
import type { Command, CommandIo } from "../kit/command.ts";
import { realHost } from "../host/real.ts";
import { nodePaths } from "../kit/paths.ts";
import { version } from "../kit/version.ts";
import { bridge, renderLines, renderScreen } from "./frame.ts";
import type { ConsoleView } from "./model.ts";
import { eventFeed, gatherView, socketGet } from "./gather.ts";
import { openTty, type Tty } from "./tty.ts";
import { viewFor } from "./views.ts";
import { appendAll, appendChanges, paintAll, paintChanges } from "./writer.ts";

const usage = "usage: corium console TTY | corium console --once\n";
const pollMs = 2_000;
/** In service nothing moves fast, and each look asks k0s, mdadm and wg. */
const calmPollMs = 15_000;
/** A slow machine is looked at less often: looking costs it what it needs for its work. But who waits must see it end. */
const restPerLook = 4;
const longestRestMs = 10_000;

export const consoleCommand: Command = async (argv, io) => {
  const [name] = argv;
  if (name === undefined || argv.length > 1 || (name.startsWith("-") && name !== "--once")) {
    io.err(usage);
    return 2;
  }
  if (name === "--once") {
    io.out(
      renderLines(await gather())
        .map((line) => `${line}\n`)
        .join(""),
    );
    return 0;
  }
  let tty: Tty;
  try {
    tty = openTty(name, io.env["TERM"]);
  } catch (error) {
    io.err(`corium: cannot open ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  try {
    await show(tty, io);
  } finally {
    tty.close();
  }
  return 0;
};

const host = realHost();
const paths = nodePaths();
const get = socketGet(paths.socket);
const events = eventFeed(get);
const gather = () => gatherView({ host, paths, get, events, version });

async function show(tty: Tty, io: CommandIo): Promise<void> {
  let shown: readonly string[] | undefined;
  let lastNode: ConsoleView["node"];
  let misses = 0;
  const typed: string[] = [];
  let wake = new AbortController();
  tty.onLine((line) => {
    typed.push(line.trim().toLowerCase());
    wake.abort();
  });
  while (!io.signal.aborted) {
    const key = typed.shift();
    if (key !== undefined) {
      const lines = key === "" ? undefined : await viewFor(key, get);
      if (lines !== undefined) {
        await tty.write(tty.isScreen ? paintAll([...lines.slice(0, 22), "", "Enter goes back"]) : appendAll(lines));
        // On a screen the view stays until the next line; a serial log just goes on.
        if (tty.isScreen) await waitForLine();
      }
      shown = tty.isScreen || key === "" ? undefined : shown;
    }
    const began = host.clock.monotonicMs();
    const fresh = await gather();
    const tookMs = host.clock.monotonicMs() - began;
    const view = bridge(fresh, lastNode, misses);
    misses = fresh.node === undefined ? misses + 1 : 0;
    lastNode = fresh.node ?? lastNode;
    const next = tty.isScreen ? renderScreen(view) : renderLines(view);
    if (shown === undefined) await tty.write(tty.isScreen ? paintAll(next) : appendAll(next));
    else {
      const text = tty.isScreen ? paintChanges(shown, next) : appendChanges(shown, next);
      if (text !== "") await tty.write(text);
    }
    shown = next;
    const isCalm = view.node?.phase === "in-service" && view.node.operation === undefined;
    if (typed.length === 0)
      await pause(Math.max(isCalm ? calmPollMs : pollMs, Math.min(restPerLook * tookMs, longestRestMs)));
  }

  async function pause(ms: number): Promise<void> {
    wake = new AbortController();
    await host.clock.sleep(ms, AbortSignal.any([wake.signal, io.signal]));
  }

  async function waitForLine(): Promise<void> {
    while (typed.length === 0 && !io.signal.aborted) await pause(pollMs);
    if (typed[0] === "") typed.shift();
  }
}
