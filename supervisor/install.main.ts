/** `corium install [--dry-run [--config FILE]]`: what `corium bootstrap` does on a live system, refused anywhere else. */
import type { Command } from "../kit/command.ts";
import { realHost } from "../host/real.ts";
import { nodePaths } from "../kit/paths.ts";
import { bootstrapCommand, readBootFacts } from "./bootstrap.main.ts";

export const installCommand: Command = async (argv, io) => {
  const at = argv.indexOf("--run-dir");
  const boot = await readBootFacts(realHost(), nodePaths(undefined, at === -1 ? undefined : argv[at + 1]));
  if (boot.mode !== "live") {
    io.err("corium: only a live system installs; start this machine from the ISO or by PXE\n");
    return 1;
  }
  return bootstrapCommand(argv, io);
};
