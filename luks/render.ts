/**
 * /etc/crypttab. Our lines stand between two markers, sorted by name; what is outside them is left as it is.
 * `headless=1`: nobody is asked at a console that may not be there. `nofail`: the node boots and answers with a volume
 * locked. `token-timeout=10s`: so long a TPM may take to show up.
 */
import { mappingName, passphraseFile } from "./argv.ts";
import type { Unlock } from "./model.ts";

export const CRYPTTAB = "/etc/crypttab";
const BEGIN = "# corium: volumes of this node, written by corium";
const END = "# corium: end";

export interface RecordedVolume {
  readonly name: string;
  readonly uuid: string;
  readonly unlock: Unlock;
}

export function crypttabLine({ name, uuid, unlock }: RecordedVolume): string {
  const [key, how] = unlock === "tpm2" ? ["none", ",tpm2-device=auto"] : [passphraseFile(name), ""];
  return `${mappingName(name)} UUID=${uuid} ${key} luks${how},headless=1,nofail,token-timeout=10s`;
}

const nameOf = (line: string): string => line.split(/\s/)[0] ?? "";

/** Between our markers, and everything else. */
function split(text: string): { readonly ours: readonly string[]; readonly others: string } {
  const lines = text.split("\n");
  const begin = lines.indexOf(BEGIN);
  const end = begin === -1 ? -1 : lines.indexOf(END, begin);
  const isWhole = begin !== -1 && end !== -1;
  const outside = isWhole ? [...lines.slice(0, begin), ...lines.slice(end + 1)] : lines;
  const ours = isWhole ? lines.slice(begin + 1, end).filter((line) => line !== "") : [];
  return { ours, others: outside.join("\n").replace(/\n+$/, "") };
}

function joined(others: string, ours: readonly string[]): string {
  const block = ours.length === 0 ? [] : [BEGIN, ...ours.toSorted(), END];
  return [...(others === "" ? [] : [others]), ...block].map((line) => `${line}\n`).join("");
}

/** The text with this line of ours in it, instead of an older one of the same name. */
export function withLine(text: string, line: string): string {
  const { ours, others } = split(text);
  return joined(others, [...ours.filter((each) => nameOf(each) !== nameOf(line)), line]);
}

/** Without our lines of these mappings. */
export function withoutLines(text: string, mappings: readonly string[]): string {
  const { ours, others } = split(text);
  return joined(
    others,
    ours.filter((line) => !mappings.includes(nameOf(line))),
  );
}

/** Mappings of our lines. */
export const lineNames = (text: string): readonly string[] => split(text).ours.map(nameOf);

/** The whole file of a node that has no lines but ours; undefined without volumes. */
export function renderCrypttab(volumes: readonly RecordedVolume[]): string | undefined {
  if (volumes.length === 0) return undefined;
  return volumes.reduce((text, volume) => withLine(text, crypttabLine(volume)), "");
}
