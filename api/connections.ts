/** Connections of both doors, numbered as they are opened: what confirms a change must have come after it. */
export interface Connections {
  /** The number of one that is opened now. */
  open(): number;
  readonly last: number;
}

export function countConnections(): Connections {
  let last = 0;
  return {
    open: () => (last += 1),
    get last() {
      return last;
    },
  };
}
