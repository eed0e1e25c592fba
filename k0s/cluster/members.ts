/** Members of etcd, as `k0s etcd member-list` prints them (facts: section 2.6), and which of them a node is. */
import { isMap, valueAt } from "../merge.ts";

export interface Member {
  readonly name: string;
  /** `https://192.0.2.11:2380` */
  readonly url: string;
}

/** By name; undefined when it printed something else. */
export function parseMembers(stdout: string): readonly Member[] | undefined {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  const listed = valueAt(json, ["members"]);
  // Who answers is one itself: none at all is no answer, and would let a change through that is meant for a lone controller.
  if (!isMap(listed) || Object.keys(listed).length === 0) return undefined;
  const members = Object.entries(listed).map(([name, url]) => ({ name, url: typeof url === "string" ? url : "" }));
  return members.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** By the peer address where it is recorded: a member's name need not be the Node's (k0s issue 3985). */
export function ownMember(
  members: readonly Member[],
  own: { readonly hostname: string; readonly peerAddress?: string },
): Member | undefined {
  const { hostname, peerAddress } = own;
  const byAddress = members.filter(({ url }) => peerAddress !== undefined && hostOf(url) === peerAddress);
  return byAddress[0] ?? members.find(({ name }) => name === hostname);
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname.replaceAll(/[[\]]/g, "") : "");
