/** The rescue menu: questions and answers, pure. No shell; what changes something asks for a name as it is shown. */
import type { FilesystemSeen, InstalledSystem, RescueSight } from "../supervisor/rescue.ts";
import type { Answer, Input, Turn } from "./dialogue.ts";
import { keyQuestion } from "./unlock-dialogue.ts";
import { ask, isCancel, isTyped, NOTHING_CHANGED, shown } from "./dialogue.ts";

export type RescueRequest =
  | { readonly do: "look" }
  | { readonly do: "re-key"; readonly device: string }
  | { readonly do: "reset"; readonly device: string; readonly isWipingDisks: boolean }
  | { readonly do: "repair"; readonly device: string }
  | { readonly do: "volumes" }
  | { readonly do: "unlock"; readonly name: string; readonly key: string }
  | { readonly do: "addresses" }
  | { readonly do: "leave"; readonly way: "start" | "reboot" | "poweroff" };

export type RescueState =
  | { readonly at: "looking"; readonly before: readonly string[] }
  | { readonly at: "menu"; readonly sight: RescueSight }
  | {
      readonly at: "systems";
      readonly sight: RescueSight;
      readonly systems: readonly InstalledSystem[];
      readonly to: "re-key" | "reset";
    }
  | { readonly at: "disks"; readonly sight: RescueSight; readonly system: InstalledSystem }
  | { readonly at: "seeking" }
  | { readonly at: "volumes"; readonly names: readonly string[] }
  | { readonly at: "key"; readonly name: string }
  | { readonly at: "filesystems"; readonly sight: RescueSight; readonly filesystems: readonly FilesystemSeen[] }
  | {
      readonly at: "confirm";
      readonly sight: RescueSight;
      readonly words: string;
      readonly request: RescueRequest;
      readonly done: string;
    }
  | { readonly at: "sent"; readonly done: string };

export type RescueTurn = Turn<RescueState, RescueRequest>;

/** With what was just said above it. */
export const beginRescue = (before: readonly string[] = []): RescueTurn => ({
  state: { at: "looking", before },
  lines: [],
  request: { do: "look" },
});

export function stepRescue(state: RescueState, input: Input): RescueTurn {
  if (input.kind === "answer") return answered(state, input.answer);
  if (state.at === "menu") return menu(state.sight, input);
  if (isCancel(input)) return beginRescue([NOTHING_CHANGED]);
  const number = input.kind === "text" && /^[1-9]\d?$/.test(input.text) ? Number(input.text) : 0;
  switch (state.at) {
    case "looking":
    case "seeking":
    case "sent":
      return { state, lines: [] };
    case "volumes": {
      const name = state.names[number - 1];
      return name === undefined ? chooseVolume(state.names) : askKey(name);
    }
    case "key": {
      const { name } = state;
      if (input.kind !== "text") return askKey(name);
      const sent: RescueState = { at: "sent", done: `volume ${name} is open` };
      return { state: sent, lines: ["opening it"], request: { do: "unlock", name, key: input.text } };
    }
    case "systems": {
      const system = state.systems[number - 1];
      const { sight, systems, to } = state;
      if (system === undefined) return chooseSystem(sight, systems, to);
      return to === "reset" ? chooseDisks(sight, system) : confirmReKey(sight, system);
    }
    case "disks":
      if (number !== 1 && number !== 2) return chooseDisks(state.sight, state.system);
      return confirmReset(state.sight, state.system, number === 2);
    case "filesystems": {
      const found = state.filesystems[number - 1];
      return found === undefined ? chooseFilesystem(state.sight) : confirmRepair(state.sight, found);
    }
    case "confirm":
      if (!isTyped(input, state.words)) return beginRescue([`that is not ${state.words}`, NOTHING_CHANGED]);
      return { state: { at: "sent", done: state.done }, lines: ["working"], request: state.request };
  }
}

function answered(state: RescueState, answer: Answer): RescueTurn {
  if (state.at === "looking") {
    if (answer.ok) return showMenu(answer.json as RescueSight, state.before);
    const blind = { isLive: false, hostname: "corium", systems: [], filesystems: [], addresses: [] };
    return showMenu({ ...blind, problems: answer.lines }, state.before);
  }
  if (!answer.ok) return beginRescue(shown(answer.lines));
  if (state.at === "seeking") return chooseVolume(answer.json as readonly string[]);
  const told = Array.isArray(answer.json) ? answer.json.filter((line) => typeof line === "string") : [];
  return beginRescue(shown([...told, state.at === "sent" ? state.done : ""].filter((line) => line !== "")));
}

function showMenu(sight: RescueSight, before: readonly string[]): RescueTurn {
  const { systems, addresses, problems, isLive } = sight;
  return {
    state: { at: "menu", sight },
    lines: [
      ...before,
      ...shown([
        "Corium rescue menu",
        ...(systems.length === 0 ? ["system: no installed Corium is found"] : []),
        ...systems.map(
          ({ name, disk, problem }) => `system: ${name} on ${disk}${problem === undefined ? "" : `: ${problem}`}`,
        ),
        ...(addresses.length === 0 ? ["address: none"] : addresses.map((line) => `address: ${line}`)),
        ...problems.map((line) => `problem: ${line}`),
        "  k  re-key: the node shows a new claim code; its cluster is kept",
        "  x  reset: the node forgets what it is, and can be claimed anew",
        "  n  network: ask for addresses again",
        "  f  file systems: check and repair",
        ...(isLive ? [] : ["  u  unlock an encrypted volume"]),
        `  s  start the ${isLive ? "live system" : "node"}`,
        "  r  restart the machine",
        "  o  switch it off",
        "a letter, then Enter:",
      ]),
    ],
  };
}

function menu(sight: RescueSight, input: Input): RescueTurn {
  if (input.kind === "timeout" || input.kind === "junk") return { state: { at: "menu", sight }, lines: [] };
  const name = sight.systems.length === 1 ? (sight.systems[0]?.name ?? "corium") : sight.hostname || "corium";
  const leave = (way: "start" | "reboot" | "poweroff", what: string): RescueTurn =>
    confirm(sight, name, [`this will ${what}`], { do: "leave", way }, "asked for");
  switch (input.kind === "text" ? input.text.toLowerCase() : "") {
    case "k":
      return chooseSystem(sight, sight.systems, "re-key");
    case "x":
      return chooseSystem(sight, sight.systems, "reset");
    case "n":
      return confirm(sight, name, ["all links ask for their addresses again"], { do: "addresses" }, "");
    case "f":
      return chooseFilesystem(sight);
    case "u":
      return { state: { at: "seeking" }, lines: ["looking for locked volumes"], request: { do: "volumes" } };
    case "s":
      return leave("start", `start the ${sight.isLive ? "live system" : "node"} as if nobody had asked for this menu`);
    case "r":
      return leave("reboot", "restart the machine");
    case "o":
      return leave("poweroff", "switch the machine off");
    default:
      return beginRescue();
  }
}

function chooseSystem(sight: RescueSight, systems: readonly InstalledSystem[], to: "re-key" | "reset"): RescueTurn {
  const [first] = systems;
  if (first === undefined) return beginRescue([`there is nothing to ${to}`, NOTHING_CHANGED]);
  if (systems.length === 1) return to === "reset" ? chooseDisks(sight, first) : confirmReKey(sight, first);
  return {
    state: { at: "systems", sight, systems, to },
    lines: shown([
      `${to} which one?`,
      ...systems.map(({ name, disk, device }, at) => `  ${at + 1}  ${name}: ${device} of ${disk}`),
      "its number, or q to go back:",
    ]),
  };
}

function chooseDisks(sight: RescueSight, system: InstalledSystem): RescueTurn {
  const { name, problem } = system;
  if (problem !== undefined) return beginRescue(shown([`${name} can't be reset: ${problem}`, NOTHING_CHANGED]));
  return {
    state: { at: "disks", sight, system },
    lines: shown([
      `reset ${name}: what about its data disks?`,
      "  1  keep them, with what is on them",
      "  2  wipe them",
      "a number, or q to go back:",
    ]),
  };
}

function confirmReset(sight: RescueSight, { name, device }: InstalledSystem, isWipingDisks: boolean): RescueTurn {
  const lines = [
    `reset ${name}: k0s with its data, documents, keys and claim are erased`,
    `its data disks are ${isWipingDisks ? "WIPED" : "kept"}; the installed system stays`,
  ];
  const done = `${name} is reset at its next start from its own disk`;
  return confirm(sight, name, lines, { do: "reset", device, isWipingDisks }, done);
}

function confirmReKey(sight: RescueSight, { name, device, problem }: InstalledSystem): RescueTurn {
  if (problem !== undefined) return beginRescue(shown([`${name} can't be re-keyed: ${problem}`, NOTHING_CHANGED]));
  const done = "re-keyed: started normally, it shows a new claim code on every console";
  const lines = [
    `re-key ${name}: its operator CA commands it no more, and it can be claimed again`,
    "cluster, disks and documents are kept",
  ];
  return confirm(sight, name, lines, { do: "re-key", device }, done);
}

function chooseVolume(names: readonly string[]): RescueTurn {
  const [only, ...more] = names;
  if (only === undefined) return beginRescue(["no volume is locked", NOTHING_CHANGED]);
  if (more.length === 0) return askKey(only);
  return {
    state: { at: "volumes", names },
    lines: shown([
      "locked volumes:",
      ...names.map((name, at) => `  ${at + 1}  ${name}`),
      "number of the one to open, or q to go back:",
    ]),
  };
}

const askKey = (name: string): RescueTurn => ({
  state: { at: "key", name },
  lines: keyQuestion(name),
  isHidden: true,
});

function chooseFilesystem(sight: RescueSight): RescueTurn {
  const { filesystems } = sight;
  if (filesystems.length === 0) return beginRescue(["no file system of an installed Corium is found", NOTHING_CHANGED]);
  return {
    state: { at: "filesystems", sight, filesystems },
    lines: shown([
      "file systems of installed systems:",
      ...filesystems.map(
        (each, at) => `  ${at + 1}  ${each.device}  ${each.what} on ${each.disk}: ${standing(each) ?? "not mounted"}`,
      ),
      "number of the one to check and repair, or q to go back:",
    ]),
  };
}

const standing = ({ isMounted, problem }: FilesystemSeen): string | undefined =>
  isMounted ? "mounted, checked before that" : problem;

function confirmRepair(sight: RescueSight, found: FilesystemSeen): RescueTurn {
  const why = standing(found);
  if (why !== undefined) return beginRescue(shown([`${found.device}: ${why}`, NOTHING_CHANGED]));
  const words = found.device.replace(/^\/dev\//, "");
  const lines = [`check ${found.device} and repair whatever is found; what is damaged may be lost`];
  return confirm(sight, words, lines, { do: "repair", device: found.device }, `${found.device} was checked`);
}

const confirm = (
  sight: RescueSight,
  words: string,
  lines: readonly string[],
  request: RescueRequest,
  done: string,
): RescueTurn => ({
  state: { at: "confirm", sight, words, request, done },
  lines: shown([...lines, ask(words), "(or q to go back)"]),
});
