import { arrayName } from "../device.ts";
import { ruleSays } from "../messages/rules.ts";
import type { Path } from "../path.ts";
import { checkExclusive, checkSource, entries, uniqueNames, type RuleContext } from "./rule.ts";

export function checkLuks(context: RuleContext): void {
  const { luks } = context.draft;
  uniqueNames(context, ["luks"], luks, "volumes");
  for (const [index, volume] of entries(luks)) {
    const path: Path = ["luks", index];
    checkSource(context, [...path, "passphraseFrom"], volume.passphraseFrom);
    checkPassphrase(context, path, volume.unlock);
    const name = typeof volume.device === "string" ? arrayName(volume.device) : undefined;
    if (name !== undefined) checkArray(context, [...path, "device"], name);
  }
}

/** A volume may lie on a declared array that has no filesystem of its own. */
function checkArray(context: RuleContext, path: Path, name: string): void {
  const { raid } = context.draft;
  const array = raid?.find((entry) => entry?.name === name);
  const isKnown = context.isSound(["raid"]) || (raid ?? []).every((entry) => entry?.name !== undefined);
  if (array === undefined && isKnown) context.report(path, ruleSays.luksUndeclared(name));
  const at = raid?.indexOf(array) ?? -1;
  if (array !== undefined && array.filesystem !== "none" && context.isSound(["raid", at, "filesystem"])) {
    context.report(path, ruleSays.luksFilesystem(name));
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
