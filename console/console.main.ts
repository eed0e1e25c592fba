/**
 * `corium console TTY`: the screen of a node on one terminal. What it shows anybody in front of it may see; what changes
 * something is asked of the API, after a name was typed.
 */
import type { Command, CommandIo } from "../kit/command.ts";
import { realHost } from "../host/real.ts";
import { nodePaths } from "../kit/paths.ts";
import { version } from "../kit/version.ts";
import { beginPower, beginRetry, stepAction } from "./action-dialogue.ts";
import { converse } from "./converse.ts";
import { bridge, hasLocked, isInService, keysLine, nameShown, renderLines, renderScreen } from "./frame.ts";
import { beginInstall, stepInstall } from "./install-dialogue.ts";
import type { ConsoleView } from "./model.ts";
import { addressFeed, eventFeed, gatherView, socketCall, socketGet } from "./gather.ts";
import { beginPrevious, stepPrevious } from "./previous-dialogue.ts";
import { type QueuedTerminal, terminalOn } from "./terminal.ts";
import { onTty, type Tty } from "./tty.ts";
import { readTyped } from "./typed.ts";
import { beginUnlock, stepUnlock } from "./unlock-dialogue.ts";
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
  return onTty(name, io, (tty) => show(tty, io));
};

const host = realHost();
const paths = nodePaths();
const get = socketGet(paths.socket);
const call = socketCall(paths.socket, (ms) => host.clock.sleep(ms));
const addresses = addressFeed(host);
const events = eventFeed(get);
const gather = () => gatherView({ host, paths, get, addresses, events, version });

async function show(tty: Tty, io: CommandIo): Promise<void> {
  let shown: readonly string[] | undefined;
  let lastNode: ConsoleView["node"];
  let misses = 0;
  const terminal = terminalOn(tty, host, io.signal);
  let view: ConsoleView | undefined;
  while (!io.signal.aborted) {
    const line = await terminal.nextLine(0);
    if (line !== undefined) {
      const read = readTyped(line);
      const key = read.kind === "text" ? read.text.toLowerCase() : "";
      const isDone = view !== undefined && (await talk(key, view, terminal, io.signal));
      if (!isDone) await look(key);
      // A serial log just goes on, but for who asks to see all again.
      shown = tty.isScreen || isDone || read.kind === "empty" ? undefined : shown;
    }
    const began = host.clock.monotonicMs();
    const fresh = await gather();
    const tookMs = host.clock.monotonicMs() - began;
    view = bridge(fresh, lastNode, misses);
    misses = fresh.node === undefined ? misses + 1 : 0;
    lastNode = fresh.node ?? lastNode;
    const next = tty.isScreen ? renderScreen(view) : [...renderLines(view), keysLine(view)];
    if (shown === undefined) await tty.write(tty.isScreen ? paintAll(next) : appendAll(next));
    else {
      const text = tty.isScreen ? paintChanges(shown, next) : appendChanges(shown, next);
      if (text !== "") await tty.write(text);
    }
    shown = next;
    const isCalm = view.node?.phase === "in-service" && view.node.operation === undefined;
    if (!terminal.hasLine())
      await terminal.pause(Math.max(isCalm ? calmPollMs : pollMs, Math.min(restPerLook * tookMs, longestRestMs)));
  }

  async function look(key: string): Promise<void> {
    const lines = key === "" ? undefined : await viewFor(key, get);
    if (lines === undefined) return;
    await tty.write(tty.isScreen ? paintAll([...lines.slice(0, 22), "", "Enter goes back"]) : appendAll(lines));
    // On a screen the view stays until the next line; a serial log just goes on.
    if (tty.isScreen) await untilLine();
  }
  /** The line that ends a view may be the key of the next one. */
  async function untilLine(): Promise<void> {
    while (!terminal.hasLine() && !io.signal.aborted) await terminal.pause(pollMs);
    if (terminal.isEmptyNext()) await terminal.nextLine(0);
  }
}

/** `false`: the key begins no dialogue. */
async function talk(key: string, view: ConsoleView, terminal: QueuedTerminal, signal: AbortSignal): Promise<boolean> {
  switch (key) {
    case "i":
      if (view.boot?.mode !== "live") return false;
      await converse(terminal, beginInstall(), { step: stepInstall, perform: call, signal });
      return true;
    case "r":
      if (!isInService(view)) return false;
      await converse(terminal, beginPrevious(nameShown(view)), { step: stepPrevious, perform: call, signal });
      return true;
    case "t":
      await converse(terminal, beginRetry(nameShown(view)), { step: stepAction, perform: call, signal });
      return true;
    case "u":
      if (!hasLocked(view)) return false;
      await converse(terminal, beginUnlock(), { step: stepUnlock, perform: call, signal });
      return true;
    case "p":
      await converse(terminal, beginPower(nameShown(view)), { step: stepAction, perform: call, signal });
      return true;
    default:
      return false;
  }
}
