import type { Document } from "./document.ts";

/** Where the document's data disks, arrays and volumes are mounted. */
export const mountPointsOf = ({ disks, raid, luks }: Document): readonly string[] =>
  [...disks, ...raid, ...luks].flatMap(({ mountPoint }) => mountPoint ?? []);
