import { quote } from "./codes.ts";

/** What was wanted and what was got, in the words of "wanted …, got …". */
export const kindName = {
  map: "a map",
  list: "a list",
  record: "a map",
  choice: "text or a map",
  text: "text",
  number: "a whole number",
  boolean: "true or false",
  anything: "another value",
  nothing: "nothing",
  oneOfNumbers: (values: readonly (string | number)[]): string => `a number (${values.join(", ")})`,
  oneOfTexts: (values: readonly (string | number)[]): string => `text (${values.join(", ")})`,
  /** Without its value, which may be a secret. */
  some: (type: string): string => (type === "string" ? "text" : `a ${type}`),
  theText: (text: string): string => `the text ${quote(text)}`,
  the: (type: string, source: string): string => `the ${type} ${source}`,
};

/** How a value of the wrong kind is put right. */
export const kindHint = {
  listEntries: 'start each entry with "- "',
  list: "write a list: [one, two]",
  noListEntries: 'write "key: value" lines without "- "',
  indent: "write its fields below it, indented",
  unquote: "take the quotes off",
  quote: "quote it",
  oldBoolean: (value: boolean): string => `only YAML 1.1 reads this as a boolean: write ${value}`,
  oldNumber: "only YAML 1.1 reads this as a number: write it in plain digits",
  /** `more`: what else is wrong with it as text. */
  quoteText: (source: string, more: string | undefined): string =>
    `quote it: ${quote(source)}${more === undefined ? "" : `; ${more}`}`,
  below: (key: string, owner: string): string => `indent it if it belongs to ${owner}: above, which has ${key}`,
  topLevel: (key: string): string => `${key} belongs at the top level of the document: check its indentation`,
};
