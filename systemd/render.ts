/** One `Key=value` line; a list gives one line for each. */
export type UnitEntry = readonly [key: string, value: string | readonly string[]];
export type UnitSection = readonly [name: string, entries: readonly UnitEntry[]];

/** The text of a unit, drop-in, netdev or network file, in the order given; empty sections are left out. */
export function renderUnit(comment: string, sections: readonly UnitSection[]): string {
  const blocks = sections
    .map(([name, entries]) => {
      const lines = entries.flatMap(([key, value]) =>
        (typeof value === "string" ? [value] : value).map((each) => `${key}=${each}`),
      );
      return lines.length === 0 ? "" : [`[${name}]`, ...lines].join("\n");
    })
    .filter((block) => block !== "");
  return `${[`# ${comment}`, ...blocks].join("\n\n")}\n`;
}
