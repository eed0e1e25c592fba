import { arrayName } from "../device.ts";
import { ruleSays } from "../messages/rules.ts";
import type { Path } from "../path.ts";
import { checkExclusive, checkSource, entries, uniqueNames, type RuleContext } from "./rule.ts";

export function checkLuks(context: RuleContext): void {
  const { luks, raid } = context.draft;
  const arrays = new Map(entries(raid).map((entry) => [entry[1].name, entry]));
  const isKnown = context.isSound(["raid"]) || (raid ?? []).every((entry) => entry?.name !== undefined);
  uniqueNames(context, ["luks"], luks, "volumes");
  for (const [index, volume] of entries(luks)) {
    const path: Path = ["luks", index];
    checkSource(context, [...path, "passphraseFrom"], volume.passphraseFrom);
    checkPassphrase(context, path, volume.unlock);
    const name = typeof volume.device === "string" ? arrayName(volume.device) : undefined;
    if (name === undefined) continue;
    // A volume may lie on a declared array that has no filesystem of its own.
    const [at, array] = arrays.get(name) ?? [];
    if (array === undefined && isKnown) context.report([...path, "device"], ruleSays.luksUndeclared(name));
    if (at === undefined || array?.filesystem === "none") continue;
    if (context.isSound(["raid", at, "filesystem"])) {
      context.report([...path, "device"], ruleSays.luksFilesystem(name));
    }
  }
}

function checkPassphrase(context: RuleContext, path: Path, unlock: string | undefined): void {
  const fields = ["passphrase", "passphraseFrom"].filter((field) => context.given([...path, field]));
  if (!checkExclusive(context, path, "passphrase", "passphraseFrom")) return;
  if (!context.isSound([...path, "unlock"])) return;
  if (unlock !== "passphrase") {
    for (const field of fields) context.report([...path, field], ruleSays.passphraseWithTpm());
  } else if (fields.length === 0) {
    context.report([...path, "passphrase"], ruleSays.secretMissing("passphrase", "passphraseFrom"));
  }
}
