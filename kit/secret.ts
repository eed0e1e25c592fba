/**
 * A value that must not reach a log, an error, an argv or JSON by accident: every way of printing it gives
 * the placeholder `<secret:FIELD>`. Only `reveal` gives the text, to be passed on stdin or to a 0600 file.
 */
export class Secret {
  readonly field: string;
  readonly #text: string;

  constructor(field: string, text: string) {
    this.field = field;
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return `<secret:${this.field}>`;
  }

  toJSON(): string {
    return this.toString();
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}
