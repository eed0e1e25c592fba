/**
 * A file as a pure renderer makes it: secrets stand as `<secret:FIELD>` until an executor fills them in at
 * the moment of writing.
 */
export interface RenderedFile {
  readonly path: string;
  /** Permission bits, e.g. 0o600. */
  readonly mode: number;
  readonly owner?: { readonly user: string; readonly group: string };
  readonly content: string;
}
