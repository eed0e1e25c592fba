import { nearest } from "./names.ts";

/** Every `corium.*` kernel argument that some part of the system reads. Others are a warning. */
export const KNOWN_ARGUMENTS: readonly string[] = [
  "corium.config",
  "corium.config.sha256",
  "corium.config.ca",
  "corium.ntp",
  "corium.luks-pcr7",
  "corium.mode",
  "corium.rescue",
  "corium.slot",
  "corium.installation",
  "corium.root",
  "corium.sha256",
  "corium.roothash",
  "corium.hashoffset",
];

export interface KernelArgument {
  readonly name: string;
  /** Absent without `=`. */
  readonly value?: string;
}

/**
 * As the kernel's next_arg does: spaces part arguments but inside double quotes, and quotes may stand around the
 * value or around the whole argument. What follows `--` is for init.
 */
export function parseCmdline(text: string): readonly KernelArgument[] {
  const words: readonly string[] = text.match(/(?:[^\s"]|"[^"]*(?:"|$))+/g) ?? [];
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).map((word) => {
    const plain = word.startsWith('"') ? unquote(word) : word;
    const equals = plain.indexOf("=");
    if (equals < 0) return { name: unquote(plain) };
    return { name: plain.slice(0, equals), value: unquote(plain.slice(equals + 1)) };
  });
}

const unquote = (text: string): string => text.replace(/^"/, "").replace(/"$/, "");

/** The last one wins, as for the kernel. */
export const argumentValue = (list: readonly KernelArgument[], name: string): string | undefined =>
  list.findLast((argument) => argument.name === name && argument.value !== undefined)?.value;

/** Warnings about `corium.*` arguments that nothing reads. */
export function unknownArguments(list: readonly KernelArgument[], known = KNOWN_ARGUMENTS): readonly string[] {
  const names = new Set(list.map(({ name }) => name).filter((name) => /^corium\./i.test(name)));
  return [...names]
    .filter((name) => !known.includes(name) && !name.startsWith("corium.part."))
    .map((name) => {
      const near = nearest(name, known);
      return `unknown kernel argument ${name}${near === undefined ? "" : `, did you mean ${near}?`}`;
    });
}
