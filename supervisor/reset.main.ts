/** `corium reset`: carries out the reset that was asked for, or goes on with it; with none asked for it does nothing. */
import { readInventory } from "../disks/driver.ts";
import { realHost } from "../host/real.ts";
import type { Command } from "../kit/command.ts";
import { nodePaths } from "../kit/paths.ts";
import { version } from "../kit/version.ts";
import { openErasable } from "../state/erase.ts";
import { readBootFacts } from "./machine.ts";
import { carryOutReset } from "./reset.ts";

export const resetCommand: Command = async (argv, io) => {
  if (argv.length > 0) {
    io.err("usage: corium reset (asked for with `cctl reset`, or at the rescue menu)\n");
    return 2;
  }
  const paths = nodePaths();
  const plain = realHost();
  const boot = (await readBootFacts(plain, paths)) ?? { mode: "disk" as const };
  if (boot.mode === "live") {
    io.err("corium: a live system keeps nothing that could be reset\n");
    return 1;
  }
  const host = realHost({ keptEtc: paths.keptEtc });
  return carryOutReset({
    host,
    paths,
    version,
    readInventory: () => readInventory(host, boot),
    openErasable: () => openErasable(paths),
    say: (line) => io.err(`corium reset: ${line}\n`),
    signal: io.signal,
  });
};
