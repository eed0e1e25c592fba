/** `corium rescue TTY`: the menu that is left when a node can't be started, or is not to be. */
import type { AppError } from "../kit/app-error.ts";
import { fail, formatError } from "../kit/app-error.ts";
import type { Command, CommandIo } from "../kit/command.ts";
import type { Paths } from "../kit/paths.ts";
import { nodePaths } from "../kit/paths.ts";
import type { Result } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import { readInventory } from "../disks/driver.ts";
import { realHost } from "../host/real.ts";
import { unlockVolume } from "../luks/driver.ts";
import type { State } from "../state/open.ts";
import { readBootFacts } from "../supervisor/machine.ts";
import { reKey } from "../supervisor/re-key.ts";
import type { Rescue } from "../supervisor/rescue.ts";
import { createRescue } from "../supervisor/rescue.ts";
import { nodeVolumes } from "../supervisor/volumes.ts";
import { converse } from "./converse.ts";
import type { Answer } from "./dialogue.ts";
import type { RescueRequest } from "./rescue-dialogue.ts";
import { beginRescue, stepRescue } from "./rescue-dialogue.ts";
import { terminalOn } from "./terminal.ts";
import { onTty, type Tty } from "./tty.ts";

export const rescueCommand: Command = async (argv, io) => {
  const [name] = argv;
  if (name === undefined || argv.length > 1 || name.startsWith("-")) {
    io.err("usage: corium rescue TTY\n");
    return 2;
  }
  return onTty(name, io, (tty) => serveMenu(tty, io));
};

async function serveMenu(tty: Tty, io: CommandIo): Promise<void> {
  const host = realHost();
  const paths = nodePaths();
  const boot = (await readBootFacts(host, paths)) ?? { mode: "disk" as const };
  const rescue = createRescue({
    host,
    paths,
    boot,
    readInventory: () => readInventory(host, boot),
    openState,
    reKey,
    volumesOf: (state) => nodeVolumes(host, state),
    unlock: unlockVolume,
  });
  const terminal = terminalOn(tty, host, io.signal);
  const perform = (request: RescueRequest): Promise<Answer> => carryOut(rescue, request);
  while (!io.signal.aborted) await converse(terminal, beginRescue(), { step: stepRescue, perform, signal: io.signal });
}

async function openState(of: Pick<Paths, "database" | "marker">): Promise<Result<State, AppError>> {
  try {
    const { openState: open } = await import("../state/open.ts");
    return open(of);
  } catch (error) {
    return fail("state-unreadable", `the database can't be opened: ${error instanceof Error ? error.message : "?"}`);
  }
}

async function carryOut(rescue: Rescue, request: RescueRequest): Promise<Answer> {
  const done = await resultOf(rescue, request);
  return done.ok ? { ok: true, json: done.value } : { ok: false, lines: formatError(done.error).split("\n") };
}

function resultOf(rescue: Rescue, request: RescueRequest): Promise<Result<unknown, AppError>> {
  switch (request.do) {
    case "look":
      return rescue.look();
    case "re-key":
      return rescue.reKey(request.device);
    case "reset":
      return rescue.reset(request.device, request.isWipingDisks);
    case "repair":
      return rescue.repair(request.device);
    case "volumes":
      return rescue.lockedVolumes();
    case "unlock":
      return rescue.unlock(request.name, new Secret("key", request.key));
    case "addresses":
      return rescue.askForAddresses();
    case "leave":
      return rescue.leave(request.way);
  }
}
