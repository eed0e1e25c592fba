/** `i` on a live system: which disk, a second one if the release mirrors, what will be lost, and the typed word. Pure. */
import type { InstallBody, InstallOffer, InstallOffersAnswer } from "../api/contract.ts";
import { formatSize } from "../disks/describe.ts";
import { COLUMNS, printable, wrap } from "./frame.ts";
import type { Input, Turn } from "./dialogue.ts";
import { ask, isCancel, isTyped, NOTHING_CHANGED, over, shown } from "./dialogue.ts";
import type { ApiRequest } from "./request.ts";

export type InstallState =
  | { readonly at: "looking" }
  | { readonly at: "disk"; readonly offers: InstallOffersAnswer; readonly page: number }
  | { readonly at: "mirror"; readonly offers: InstallOffersAnswer; readonly page: number; readonly disk: InstallOffer }
  | { readonly at: "confirm"; readonly disk: InstallOffer; readonly mirror?: InstallOffer }
  | { readonly at: "sent" };

export type InstallTurn = Turn<InstallState, ApiRequest>;

/** Of up to three lines each; with head and foot that is a screen. */
const PER_PAGE = 6;

export const beginInstall = (): InstallTurn => ({
  state: { at: "looking" },
  lines: ["looking at the disks"],
  request: { method: "GET", path: "/v1/install" },
});

export function stepInstall(state: InstallState, input: Input): InstallTurn {
  if (input.kind === "answer") return answered(state, input);
  if (isCancel(input)) return over(NOTHING_CHANGED);
  switch (state.at) {
    case "looking":
    case "sent":
      return { state, lines: [] };
    case "disk":
    case "mirror":
      return choose(state, input);
    case "confirm": {
      const words = wordsFor(state);
      if (!isTyped(input, words)) return over(`that is not ${words}`, NOTHING_CHANGED);
      return {
        state: { at: "sent" },
        lines: ["asking the node"],
        request: { method: "POST", path: "/v1/install", body: bodyFor(state) },
      };
    }
  }
}

function answered(state: InstallState, input: Input & { readonly kind: "answer" }): InstallTurn {
  const { answer } = input;
  if (!answer.ok) return over(...answer.lines, NOTHING_CHANGED);
  if (state.at === "sent") return over("the installation begins; its steps are shown here");
  if (state.at !== "looking") return { state, lines: [] };
  const offers = answer.json as InstallOffersAnswer;
  if (offers.disks.length === 0) return over("no disk was found at all", NOTHING_CHANGED);
  return list({ at: "disk", offers, page: 0 });
}

type Choice = InstallState & { readonly at: "disk" | "mirror" };

function choose(state: Choice, input: Input): InstallTurn {
  const { disks } = state.offers;
  const text = input.kind === "text" ? input.text.toLowerCase() : "";
  if (text === "m" && disks.length > PER_PAGE) {
    return list({ ...state, page: (state.page + 1) * PER_PAGE < disks.length ? state.page + 1 : 0 });
  }
  if (text === "-" && state.at === "mirror") return confirm({ at: "confirm", disk: state.disk });
  const offer = /^[1-9]\d{0,3}$/.test(text) ? disks[Number(text) - 1] : undefined;
  if (offer === undefined) return list(state, "that is no number of this list");
  if (!offer.isAccepted || offer.ref === undefined) return list(state, `disk ${text} is not accepted: ${offer.reason}`);
  if (state.at === "disk") {
    if (state.offers.canMirror) return list({ at: "mirror", offers: state.offers, page: 0, disk: offer });
    return confirm({ at: "confirm", disk: offer });
  }
  if (offer.path === state.disk.path) return list(state, "that is the disk itself; name another one, or -");
  return confirm({ at: "confirm", disk: state.disk, mirror: offer });
}

function list(state: Choice, complaint?: string): InstallTurn {
  const { disks } = state.offers;
  const from = state.page * PER_PAGE;
  const page = disks.slice(from, from + PER_PAGE);
  const head = state.at === "disk" ? "install Corium; disks of this machine:" : "mirror it on a second disk:";
  const foot = state.at === "disk" ? "number of the disk to install on" : "number of the second disk, - for none";
  return {
    state,
    lines: [
      ...shown([head]),
      ...page.flatMap((disk, at) => offerLines(disk, from + at + 1)),
      ...shown([
        ...(complaint === undefined ? [] : [complaint]),
        `${foot}${disks.length > PER_PAGE ? `, m for more of the ${disks.length}` : ""}, q to go back:`,
      ]),
    ],
  };
}

/** Exact bytes: two disks of `4 TB` need not be of one size. */
export const nameOf = ({ path, sizeBytes, model, serial, wwn }: InstallOffer): string =>
  [
    `${path}  ${sizeBytes} bytes (${formatSize(sizeBytes)})`,
    ...(model === undefined ? [] : [model]),
    ...(serial === undefined ? (wwn === undefined ? ["no serial"] : [`wwn ${wwn}`]) : [`serial ${serial}`]),
  ].join("  ");

function offerLines(offer: InstallOffer, number: number): readonly string[] {
  const says = offer.isAccepted ? acceptedAs(offer) : `not accepted: ${offer.reason}`;
  return [...cut(`${String(number).padStart(2)}  ${nameOf(offer)}`, 1), ...cut(says, 2, "    ")];
}

function acceptedAs({ consent, content }: InstallOffer): string {
  switch (consent) {
    case "none":
      return content === "" ? "blank" : `begun before, is gone on with: ${content}`;
    case "wipe":
      return `holds data, which will be lost: ${content === "" ? "in use by an idle array or mapping" : content}`;
    case "wipe-own":
      return "holds an installed Corium, which will be lost with all it kept";
  }
}

function cut(text: string, most: number, indent = ""): readonly string[] {
  const lines = wrap(printable(text), COLUMNS - indent.length).map((line) => `${indent}${line}`);
  return lines.length <= most ? lines : [...lines.slice(0, most - 1), `${(lines[most - 1] ?? "").slice(0, 77)}...`];
}

function confirm(state: InstallState & { readonly at: "confirm" }): InstallTurn {
  const disks = [state.disk, ...(state.mirror === undefined ? [] : [state.mirror])];
  const lost = disks.filter(({ consent }) => consent !== "none");
  return {
    state,
    lines: shown([
      `install Corium on ${disks.length === 1 ? "this disk" : "these two disks, which mirror each other"}:`,
      ...disks.map((disk) => `  ${nameOf(disk)}`),
      ...(lost.length === 0 ? ["nothing is on it that could be lost"] : ["all of this will be lost:"]),
      ...lost.map((disk) => `  ${disk.path}: ${acceptedAs(disk)}`),
      "then the machine restarts from it",
      ask(wordsFor(state)),
      "(or q to go back)",
    ]),
  };
}

/** What will be lost is said by the very word of the document; which disk, by what is printed on it. */
export function wordsFor({ disk, mirror }: { readonly disk: InstallOffer; readonly mirror?: InstallOffer }): string {
  const disks = [disk, ...(mirror === undefined ? [] : [mirror])];
  const names = disks.map(({ serial, wwn, path }) => serial ?? wwn ?? path.replace(/^\/dev\//, ""));
  const verb = disks.some(({ consent }) => consent === "wipe-own")
    ? ["wipe-own"]
    : disks.some(({ consent }) => consent === "wipe")
      ? ["wipe"]
      : [];
  return [...verb, ...names].join(" ").replace(/\s+/g, " ");
}

function bodyFor({ disk, mirror }: InstallState & { readonly at: "confirm" }): InstallBody {
  const consents = [disk.consent, mirror?.consent];
  const isWipe = consents.some((consent) => consent === "wipe" || consent === "wipe-own");
  return {
    // Chosen only when it has one.
    disk: disk.ref ?? disk.path,
    ...(mirror === undefined ? {} : { mirror: mirror.ref ?? mirror.path }),
    ...(isWipe ? { wipe: true } : {}),
    ...(consents.includes("wipe-own") ? { wipeOwn: true } : {}),
  };
}
