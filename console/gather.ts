/** Collects what the screen shows: from the API over its socket, and from the files of /run while it does not answer. */
import type { ErrorBody, NodeAnswer } from "../api/contract.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { EventRecord } from "../state/model.ts";
import type { Answer } from "./dialogue.ts";
import type { ConsoleView, Enrolment } from "./model.ts";
import type { ApiRequest } from "./request.ts";
import { globalAddresses, parseLinks } from "../provision/facts.ts";
import { bootstrapStatusPath, parseBootstrapStatus } from "../supervisor/bootstrap-status.ts";

/** GET on the root-only socket; the text of a 200, else what went wrong. */
export type LocalGet = (path: string) => Promise<{ readonly text: string } | { readonly problem: string }>;

export const socketGet =
  (socket: string): LocalGet =>
  async (path) => {
    try {
      const headers = { "corium-client": "console" };
      const answer = await fetch(`http://localhost${path}`, {
        unix: socket,
        headers,
        signal: AbortSignal.timeout(20_000),
      });
      const text = await answer.text();
      return answer.ok ? { text } : { problem: `${path} answered with status ${answer.status}` };
    } catch {
      return { problem: "not answering yet" };
    }
  };

/** The same door as everybody's; what is asked here is in the audit as the console's. */
export const socketCall =
  (socket: string, sleep: (ms: number) => Promise<void>) =>
  async ({ method, path, body, ifMatch, isLong }: ApiRequest): Promise<Answer> => {
    const ask = async (): Promise<Answer> => {
      const answer = await fetch(`http://localhost${path}`, {
        unix: socket,
        method,
        headers: {
          "corium-client": "console",
          "content-type": "application/json",
          ...(ifMatch === undefined ? {} : { "if-match": ifMatch }),
        },
        ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
        signal: AbortSignal.timeout(isLong === true ? LONG_MS : 120_000),
      });
      const json: unknown = await answer.json();
      if (answer.ok) return { ok: true, json };
      return { ok: false, lines: refusalLines(json, answer.status), ...(isBegun(json) ? { isBegun: true } : {}) };
    };
    const asked = ask().catch((): Answer => ({ ok: false, lines: ["the API does not answer"], isBegun: true }));
    if (isLong !== true) return asked;
    const goesOn = sleep(GOES_ON_MS).then((): Answer => ({ ok: true, json: {} }));
    return Promise.race([asked, goesOn]);
  };

/** Refusals come by then; what takes longer is being done. */
const GOES_ON_MS = 10_000;
const LONG_MS = 3_600_000;

/** A refusal names no operation but the one in its way. */
export function isBegun(json: unknown): boolean {
  const { operation, reason } = (typeof json === "object" && json !== null ? json : {}) as Partial<ErrorBody>;
  return operation !== undefined && reason !== "busy";
}

export function refusalLines(json: unknown, status: number): readonly string[] {
  const body = (typeof json === "object" && json !== null ? json : {}) as Partial<ErrorBody>;
  return [
    `refused: ${body.error ?? `status ${status}`}`,
    ...(body.problems ?? []).flatMap(({ path, message, hint }) => [
      `  ${path === "" ? "" : `${path}: `}${message}`,
      ...(hint === undefined ? [] : [`    ${hint}`]),
    ]),
  ];
}

/** The last few, fetched once each: a node that runs for years has many. */
export function eventFeed(get: LocalGet, kept = 8): () => Promise<readonly EventRecord[]> {
  let events: readonly EventRecord[] = [];
  return async () => {
    const seq = events.at(-1)?.seq;
    const answer = await get(seq === undefined ? "/v1/events" : `/v1/events?since=${seq}`);
    if ("text" in answer) events = [...events, ...parseEvents(answer.text)].slice(-kept);
    return events;
  };
}

export type Addresses = ConsoleView["addresses"];

/** Of the node's own cards. What `ip` said last stays while it does not answer: an address that is there is not "none". */
export function addressFeed(host: Host): () => Promise<Addresses> {
  let known: Addresses = [];
  return async () => {
    const ran = await host.exec({ argv: ["ip", "-j", "-d", "addr"], timeoutMs: 5_000 });
    const links = parseLinks(ran.stdout);
    if (ran.exitCode !== 0 || !links.ok) return known;
    known = links.value.flatMap((link) =>
      link.isLoopback || link.kind === "veth" || link.kind === "bridge"
        ? []
        : globalAddresses(link).map(({ address, prefix }) => ({ link: link.name, address: `${address}/${prefix}` })),
    );
    return known;
  };
}

export interface Sources {
  readonly host: Host;
  readonly addresses: () => Promise<Addresses>;
  readonly paths: Paths;
  readonly get: LocalGet;
  readonly events: () => Promise<readonly EventRecord[]>;
  readonly version: string;
}

export async function gatherView({
  host,
  paths,
  get,
  addresses: readAddresses,
  events: readEvents,
  version,
}: Sources): Promise<ConsoleView> {
  const [answer, events, addresses, enrolment, bootstrap, boot, hostname] = await Promise.all([
    get("/v1/node"),
    readEvents(),
    readAddresses(),
    readJson<Enrolment>(host, paths.enrolment),
    host.files.readText(bootstrapStatusPath(paths.runDir), { maxBytes: 65_536 }),
    readJson<BootFacts>(host, paths.bootFacts, "mode"),
    host.files.readText("/proc/sys/kernel/hostname"),
  ]);
  const node =
    "text" in answer
      ? parseOr<NodeAnswer>(answer.text, "phase", "os", "health", "management", "storage", "overlay")
      : undefined;
  const status = bootstrap.ok ? parseBootstrapStatus(bootstrap.value) : undefined;
  return {
    version,
    hostname: hostname.ok ? hostname.value.trim() : "",
    addresses,
    ...(node === undefined ? {} : { node }),
    ...("problem" in answer ? { apiProblem: answer.problem } : {}),
    ...(enrolment === undefined ? {} : { enrolment }),
    ...(status === undefined ? {} : { bootstrap: status }),
    ...(boot === undefined ? {} : { boot }),
    events,
  };
}

async function readJson<T>(host: Host, path: string, ...keys: readonly string[]): Promise<T | undefined> {
  const text = await host.files.readText(path, { maxBytes: 65_536 });
  return text.ok ? parseOr<T>(text.value, ...keys) : undefined;
}

/** Written by this very program; but it may be half there, and no console may die of that. */
function parseOr<T>(text: string, ...keys: readonly string[]): T | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isRecord = typeof value === "object" && value !== null && keys.every((key) => key in value);
    return isRecord ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}

const parseEvents = (ndjson: string): readonly EventRecord[] =>
  ndjson
    .split("\n")
    .flatMap((line) => (line === "" ? [] : (parseOr<EventRecord>(line, "seq", "atMs", "message") ?? [])));
