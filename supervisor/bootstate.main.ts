/** `corium bootstate`: which slot boots. Also called by RAUC as its custom boot loader backend. */
import { z } from "zod";
import { realHost } from "../host/real.ts";
import { parseRequest } from "../iso/bootstate.ts";
import { bootState } from "../iso/driver.ts";
import { formatError } from "../kit/app-error.ts";
import type { Command } from "../kit/command.ts";
import { nodePaths } from "../kit/paths.ts";
import type { BootFacts } from "../kit/paths.ts";

const USAGE = `usage: corium bootstate show | get-primary | get-current | mark-good
       corium bootstate get-state A|B | set-primary A|B | set-state A|B good|bad
`;

/** The part of BootFacts that is decided upon. */
const factsSchema = z.object({
  mode: z.enum(["live", "disk"]),
  slot: z.enum(["A", "B"]).optional(),
  installation: z.string().optional(),
  isMirrored: z.boolean().optional(),
  partUuids: z
    .object({ esp: z.string(), boot: z.string(), root: z.string(), state: z.string(), data: z.string() })
    .optional(),
});

export function readFacts(text: string): BootFacts | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { success, data } = factsSchema.safeParse(value);
  if (!success) return undefined;
  const { mode, slot, installation, isMirrored, partUuids } = data;
  return {
    mode,
    ...(slot !== undefined && { slot }),
    ...(installation !== undefined && { installation }),
    ...(isMirrored !== undefined && { isMirrored }),
    ...(partUuids !== undefined && { partUuids }),
  };
}

export const bootstateCommand: Command = async (argv, io) => {
  const request = parseRequest(argv);
  if (request === undefined) {
    io.err(USAGE);
    return 2;
  }
  const host = realHost();
  const path = nodePaths().bootFacts;
  const text = await host.files.readText(path);
  const facts = text.ok ? readFacts(text.value) : undefined;
  if (facts === undefined) {
    io.err(`corium: ${text.ok ? `${path} is not what the initramfs writes` : formatError(text.error)}\n`);
    return 1;
  }
  const done = await bootState(host, facts, request);
  if (!done.ok) {
    io.err(`corium: ${formatError(done.error)}\n`);
    return 1;
  }
  io.out(done.value);
  return 0;
};
