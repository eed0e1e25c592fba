/** What the first boot of a release that renders otherwise makes of the node: the same document, written anew. */
import type { RenderedFile } from "../../kit/rendered.ts";
import type { RenderedDigests } from "../../state/model.ts";
import { effectOfFile } from "../pending.ts";

/** A render that was recorded: which one, and by which renderer. Kept beside the baseline. */
export interface RenderRecord {
  readonly operation: string;
  readonly renderVersion: number;
}

/** Stands for the document's hash in the undo record: its document is the one that the baseline has already. */
export const renderMark = (operation: string): string => `render:${operation}`;

export function parseRenderRecord(text: string | undefined): RenderRecord | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as RenderRecord);
}

export interface RerenderPlan {
  /** Written before k0s starts, which then reads them. */
  readonly write: readonly RenderedFile[];
  /** Read at boot only, or no longer made: left as they are, and pending. */
  readonly left: readonly string[];
}

/** `filled`: as they would be on the disk, secrets and all; `digest` of their text. */
export function planRerender(
  filled: readonly RenderedFile[],
  recorded: RenderedDigests,
  digest: (content: string) => string,
): RerenderPlan {
  const changed = filled.filter(({ path, content }) => recorded[path] !== digest(content));
  const paths = new Set(filled.map(({ path }) => path));
  const isWritten = ({ path }: RenderedFile): boolean => effectOfFile(path) !== "needs-reboot";
  return {
    write: changed.filter(isWritten),
    left: [
      ...changed.filter((file) => !isWritten(file)).map(({ path }) => path),
      ...Object.keys(recorded).filter((path) => !paths.has(path)),
    ].toSorted(),
  };
}
