/** What a key shows: answers of the API as plain lines. Looks only. */
import type { ConfigStatusAnswer, DiskAnswer, LogLine, NodeAnswer } from "../api/contract.ts";
import type { LocalGet } from "./gather.ts";
import { holderOf, printable } from "./frame.ts";

type View = (get: LocalGet) => Promise<readonly string[]>;

const views: Readonly<Record<string, View>> = {
  l: async (get) => {
    const text = await textOf(get, "/v1/logs?unit=corium-bootstrap.service&lines=18");
    if (typeof text !== "string") return text.lines;
    const lines = ndjson<LogLine>(text).map((line) => `${line.at.slice(11, 19)} ${line.message}`);
    return ["log of corium-bootstrap:", ...(lines.length === 0 ? ["nothing yet"] : lines)];
  },
  d: async (get) => {
    const text = await textOf(get, "/v1/disks");
    if (typeof text !== "string") return text.lines;
    const disks = (JSON.parse(text) as { readonly disks: readonly DiskAnswer[] }).disks;
    return [
      "disks:",
      ...disks.flatMap((disk) => {
        const { model, serial } = disk.identity;
        const name = [disk.path, model, serial].filter((part) => part !== undefined).join(" ");
        return [`${name}, ${disk.sizeBytes} bytes`, `  ${disk.usable ? "usable" : "not usable"}: ${disk.reason}`];
      }),
    ];
  },
  n: async (get) => {
    const text = await textOf(get, "/v1/node");
    if (typeof text !== "string") return text.lines;
    const node = JSON.parse(text) as NodeAnswer;
    return [
      "network:",
      ...node.overlay.flatMap((link) => [
        `${link.name} ${link.up ? "up" : "down"} ${link.addresses.join(" ")} public key ${link.publicKey ?? "unknown"}`,
        ...link.peers.flatMap((peer) => [
          `  peer ${peer.publicKey} ${peer.endpoint ?? ""} heard ${peer.lastHandshake ?? "never"}`,
          ...(peer.cause === undefined ? [] : [`    ${peer.state ?? "not heard"}: ${peer.cause}`]),
        ]),
      ]),
      ...(node.ha === undefined ? [] : [`virtual address ${node.ha.vip}${holderOf(node.ha)}`]),
      ...(node.overlay.length === 0 && node.ha === undefined ? ["no overlay and no virtual address"] : []),
    ];
  },
  c: async (get) => {
    const text = await textOf(get, "/v1/config/status");
    if (typeof text !== "string") return text.lines;
    const status = JSON.parse(text) as ConfigStatusAnswer;
    return [`configuration: ${status.state}`, ...status.reasons.map((reason) => `  ${reason.message}`)];
  },
};

/** Undefined for a key that shows nothing. */
export async function viewFor(key: string, get: LocalGet): Promise<readonly string[] | undefined> {
  const view = Object.hasOwn(views, key) ? views[key] : undefined;
  if (view === undefined) return undefined;
  try {
    return (await view(get)).map(printable);
  } catch {
    return ["the API gave an answer that is not understood"];
  }
}

async function textOf(get: LocalGet, path: string): Promise<string | { readonly lines: readonly string[] }> {
  const answer = await get(path);
  return "text" in answer ? answer.text : { lines: [`api: ${answer.problem}`] };
}

const ndjson = <T>(text: string): readonly T[] =>
  text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [JSON.parse(line) as T]));
