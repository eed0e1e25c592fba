/** How an answer is printed: text for people, json verbatim, yaml of the same. */
import { stringify } from "yaml";
import type { Context } from "./context.ts";
import type { ApiAnswer } from "./client.ts";
import { jsonPrintable, printable, printableValue } from "./printable.ts";

/** `toText` is called for text only, with the parsed body. */
export function printAnswer<T>(context: Context, answer: ApiAnswer, toText: (body: T) => string): void {
  if (context.output === "json") context.io.out(`${jsonPrintable(answer.body.trimEnd())}\n`);
  else if (context.output === "yaml") context.io.out(stringify(printableValue(answer.json), { lineWidth: 0 }));
  else context.io.out(toText(answer.json as T));
}

/** One line of NDJSON. */
export function printLine<T>(context: Context, line: string, toText: (row: T) => string): void {
  if (context.output === "json") {
    context.io.out(`${jsonPrintable(line)}\n`);
    return;
  }
  let row: unknown;
  try {
    row = JSON.parse(line);
  } catch {
    context.io.out(`${printable(line)}\n`);
    return;
  }
  if (context.output === "yaml") context.io.out(`---\n${stringify(printableValue(row), { lineWidth: 0 })}`);
  else context.io.out(toText(row as T));
}

/** What was put together from the answers of several nodes. Not for text. */
export function printValue(context: Context, value: unknown): void {
  context.io.out(
    context.output === "json"
      ? `${jsonPrintable(JSON.stringify(value))}\n`
      : stringify(printableValue(value), { lineWidth: 0 }),
  );
}
