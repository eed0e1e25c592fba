/**
 * Status → lines of text. Pure, plain ASCII, no cursor control: what a serial log, a screen reader and a test see.
 * The prefixes up to the colon are stable; tests and people search for them.
 */
import type { NodeAnswer } from "../api/contract.ts";
import { SYSTEM_ARRAY } from "../iso/mirror/report.ts";
import type { ConsoleView } from "./model.ts";

/** Width and height that every terminal has. */
export const COLUMNS = 80;
export const ROWS = 24;

/** What a person can type, each followed by Enter; Enter alone shows all again. */
export function keysLine(view: ConsoleView): string {
  const more = view.boot?.mode === "live" ? " i install," : isInService(view) ? " r previous," : "";
  // One line of 80 columns.
  const last = hasLocked(view) ? " u unlock," : " c config,";
  return `keys: l log, d disks, n network,${last}${more} t retry, p power, Enter`;
}

/** An encrypted volume waits for a key. */
export const hasLocked = ({ node }: Pick<ConsoleView, "node">): boolean =>
  node?.storage.volumes?.some(({ state }) => state === "locked") ?? false;

export const isInService = ({ node }: Pick<ConsoleView, "node">): boolean => isMade(node);

/** What the screen calls this node, and what is typed to confirm. */
export const nameShown = ({ node, hostname }: Pick<ConsoleView, "node" | "hostname">): string =>
  printable(node?.hostname ?? hostname);

/** Most important first; on a screen the tail is cut. */
export function renderLines(view: ConsoleView): readonly string[] {
  return [
    ...renderIdentity(view),
    ...renderWork(view),
    ...renderClaim(view),
    ...renderConfig(view.node),
    ...renderKubernetes(view.node),
    ...renderArrays(view.node),
    ...(isMade(view.node)
      ? [...renderVolumes(view.node), ...renderMounts(view.node), ...renderNetwork(view.node)]
      : []),
    ...(view.boot?.problems ?? []).map((problem) => `problem: ${problem}`),
    ...renderLostAddress(view.node),
    ...view.events.slice(-4).map((event) => `event: ${timeOf(event.atMs)} ${event.message}`),
  ].map(printable);
}

/** Before that, what its document asks for is not missing: it was never there. */
const isMade = (node: NodeAnswer | undefined): boolean => node?.phase === "in-service" || node?.phase === "degraded";

/** The same on a screen of fixed size: wrapped, cut, keys on the last line. */
export function renderScreen(view: ConsoleView, columns = COLUMNS, rows = ROWS): readonly string[] {
  const wrapped = renderLines(view).flatMap((line) => wrap(line, columns));
  const body = wrapped.slice(0, rows - 1);
  while (body.length < rows - 1) body.push("");
  return [...body, keysLine(view).slice(0, columns)];
}

/** A machine that is busy may be late with an answer or two: that is no reason to draw everything anew. */
export function bridge(view: ConsoleView, last: NodeAnswer | undefined, misses: number): ConsoleView {
  if (view.node !== undefined || last === undefined || misses >= 3) return view;
  const { apiProblem: _, ...rest } = view;
  return { ...rest, node: last };
}

export function phaseOf(view: ConsoleView): string {
  if (view.node !== undefined) return view.node.phase;
  if (view.boot?.mode === "live") return "live";
  const state = view.bootstrap?.state;
  if (state === undefined) return "starting";
  if (state === "done") return "in-service";
  return state === "running" || state === "failed" ? "provisioning" : "maintenance";
}

function renderIdentity(view: ConsoleView): string[] {
  const { node } = view;
  const role =
    node?.role === undefined
      ? []
      : [`role: ${node.role}${node.cluster === undefined ? "" : ` of cluster ${node.cluster}`}`];
  const shown = view.addresses.map(({ link, address }) => `${link} ${address}`).join(", ");
  return [
    `Corium ${node?.os.booted.version ?? view.version}`,
    `name: ${nameShown(view)}`,
    `address: ${shown === "" ? "none yet" : shown}`,
    `phase: ${phaseOf(view)}${view.boot?.slot === undefined ? "" : ` (slot ${view.boot.slot})`}`,
    ...role,
    ...(view.apiProblem === undefined ? [] : [`api: ${view.apiProblem}`]),
  ];
}

/** The running step and what it waits for; the operation when there is no word from bootstrap itself. */
function renderWork({ bootstrap, node }: ConsoleView): string[] {
  const isOver = bootstrap === undefined || bootstrap.state === "done";
  const step = isOver ? node?.operation?.step : bootstrap.step?.title;
  const message = isOver ? node?.operation?.message : bootstrap.message;
  return [
    ...(step === undefined ? [] : [`step: ${step}`]),
    ...(message === undefined || message === step ? [] : [workLine(message)]),
    ...(bootstrap?.error ?? []).map((line, at) => (at === 0 ? `error: ${line}` : `  ${line.trim()}`)),
    ...(bootstrap?.warnings ?? []).map((line) => `warning: ${line.replace(/^warning: /, "")}`),
  ];
}

/** A wait is told from work: one may be for a person. */
const workLine = (message: string): string =>
  /^waiting\b/.test(message) ? `waiting: ${message.replace(/^waiting (for )?/, "")}` : `doing: ${message}`;

/** The first reason; `cctl diff` has all of them. */
function renderConfig(node: NodeAnswer | undefined): string[] {
  const { state, reasons } = node?.config ?? { state: "unconfigured", reasons: [] };
  if (state !== "pending" && state !== "drifted") return [];
  const [first, ...more] = reasons;
  return [
    `config: ${state}${first === undefined ? "" : `: ${first}`}${more.length === 0 ? "" : ` (and ${more.length} more)`}`,
  ];
}

function renderClaim({ enrolment, node, addresses }: ConsoleView): string[] {
  if (node?.management.unauthenticated === true) {
    return ["claimed by: somebody who showed no code (api.insecure); whoever reached it first owns it"];
  }
  if (node?.management.claimedBy !== undefined || enrolment === undefined) return [];
  const { code, fingerprint } = enrolment;
  const address = addresses[0]?.address.split("/")[0];
  const shown = address?.includes(":") === true ? `[${address}]` : address;
  return [
    ...(code === undefined
      ? ["claim code: NONE IS ASKED FOR (api.insecure): anyone on this network can claim this node"]
      : [`claim code: ${code}`]),
    ...(fingerprint === undefined ? [] : [`fingerprint: ${fingerprint}`]),
    ...(shown === undefined || fingerprint === undefined
      ? []
      : [
          `claim with: cctl enroll ${shown}${code === undefined ? "" : ` --code ${code}`} --fingerprint ${fingerprint}`,
        ]),
  ];
}

function renderKubernetes(node: NodeAnswer | undefined): string[] {
  const kubernetes = node?.kubernetes;
  if (kubernetes === undefined) return [];
  const ready = kubernetes.nodeReady === undefined ? "" : kubernetes.nodeReady ? ", node ready" : ", node not ready";
  return [
    `k0s: ${kubernetes.version} ${kubernetes.active ? "active" : "not active"}${ready}`,
    ...(kubernetes.standIn === true ? ["k0s: THIS IS THE STAND-IN FOR TESTS, NOT KUBERNETES"] : []),
  ];
}

/** The system's own are there from the installation on. */
function renderArrays(node: NodeAnswer | undefined): string[] {
  const arrays = node?.storage.arrays ?? [];
  return arrays
    .filter(({ name }) => isMade(node) || name === SYSTEM_ARRAY)
    .map((array) => {
      const progress = array.progressPercent === undefined ? "" : `, rebuilding ${Math.floor(array.progressPercent)} %`;
      return `array: ${array.name} ${array.level} ${array.state} ${array.active}/${array.expected}${progress}`;
    });
}

const renderMounts = (node: NodeAnswer | undefined): string[] =>
  (node?.storage.mounts ?? [])
    .filter((mount) => !mount.mounted)
    .map(({ path, source }) => `mount: ${path} is not mounted${source === "" ? "" : ` (${source})`}`);

const renderVolumes = (node: NodeAnswer | undefined): string[] =>
  (node?.storage.volumes ?? [])
    .filter((volume) => volume.state !== "open")
    .map(({ name, state }) => `volume: ${name} is ${state}${state === "locked" ? "; u opens it with its key" : ""}`);

/** An address that the node was bootstrapped with: without it k0s does not start. */
const renderLostAddress = (node: NodeAnswer | undefined): string[] =>
  (node?.health.checks ?? [])
    .filter(({ name, ok }) => name === "address" && !ok)
    .map(({ message }) => `problem: ${message ?? "an address is gone"}`);

const HEARD = new Set(["up", "narrow"]);
/** Nothing is wrong with a peer that nobody sends to, or that has to call. */
const QUIET = new Set(["idle", "waiting"]);

function renderNetwork(node: NodeAnswer | undefined): string[] {
  const overlay = (node?.overlay ?? []).flatMap((link) => {
    const heard = link.peers.filter((peer) =>
      peer.state === undefined ? peer.lastHandshake !== undefined : HEARD.has(peer.state),
    ).length;
    const troubled = link.peers.filter(({ state, cause }) => cause !== undefined && !QUIET.has(state ?? ""));
    return [
      `overlay: ${link.name} ${link.up ? "up" : "down"} ${link.addresses.join(" ")}, heard ${heard} of ${link.peers.length} peers`,
      // The others are behind the key n.
      ...troubled.slice(0, 2).map((peer) => `peer: ${peer.endpoint ?? peer.publicKey} ${peer.cause ?? ""}`),
    ];
  });
  return [...overlay, ...(node?.ha === undefined ? [] : [`vip: ${node.ha.vip}${holderOf(node.ha)}`])];
}

/** `, held here`; empty where it is not known. */
export function holderOf({ holder, others = [], state }: NonNullable<NodeAnswer["ha"]>): string {
  const machines = others.join(" and ");
  if (state === "contested")
    return `, MORE THAN ONE HOLDER: ${holder === true ? `this node and ${machines}` : machines}`;
  if (state === "unheld") return ", held by nobody";
  if (holder === undefined) return "";
  if (holder) return ", held here";
  return machines === "" ? ", not held here" : `, held by ${machines}`;
}

const timeOf = (atMs: number): string => new Date(atMs).toISOString().slice(11, 19);

/** What a document or a disk calls itself may hold anything: no control character reaches a terminal. */
export const printable = (text: string): string =>
  [...text].map((char) => (char >= " " && char <= "~" ? char : "?")).join("");

/** At spaces where there are some; what goes on is indented. */
export function wrap(line: string, columns: number): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > columns) {
    const space = rest.lastIndexOf(" ", columns);
    const at = space > columns / 2 ? space : columns;
    lines.push(rest.slice(0, at));
    rest = `  ${rest.slice(at).trimStart()}`;
  }
  return [...lines, rest];
}
