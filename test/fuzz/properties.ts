/** What holds for every text whatsoever; each function throws an Error that says what does not. */
import { stringify } from "yaml";
import { diffDocuments } from "../../apply/classify.ts";
import { unifiedDiff } from "../../apply/show.ts";
import { writeSource } from "../../apply/driver.ts";
import type { DeviceRef, Document } from "../../config/document.ts";
import { findDocument } from "../../config/driver.ts";
import { explain } from "../../config/explain.ts";
import { parseDocument, type ParsedDocument } from "../../config/load.ts";
import { redact, redactPlain } from "../../config/redact.ts";
import { secretFields } from "../../config/secrets.ts";
import { resolveDevice } from "../../disks/select.ts";
import { addressesToRecord } from "../../k0s/addresses.ts";
import type { Inventory } from "../../kit/disk.ts";
import { nodePaths } from "../../kit/paths.ts";
import { renderNode } from "../../provision/render.ts";
import { memoryState } from "../../state/open.ts";
import { checkDocument } from "../../supervisor/check-document.ts";
import { diffData, diffText } from "../../supervisor/diff.main.ts";
import { showAsJson, showAsText } from "../../supervisor/offline.main.ts";
import { showData } from "../../supervisor/offline-arguments.ts";
import { renderData, renderText } from "../../supervisor/render.main.ts";
import { machine, machineNames } from "../machines/machines.ts";
import { fakeHost } from "../support/fake-host.ts";
import { leakIn } from "./secrets.ts";
import type { FuzzDocument } from "./slips.ts";

export const NOW_MS = Date.UTC(2027, 0, 1);

const KEY = "fingerprints";
const paths = nodePaths();
const host = fakeHost({ nowMs: NOW_MS });
const state = memoryState();
const inventories: readonly Inventory[] = machineNames.map(machine);

const parse = (text: string | Uint8Array): ParsedDocument => parseDocument(text, { file: "n.yaml", nowMs: NOW_MS });

const other = parse("role: single\n").document as Document;

function demand(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

function hides(
  what: string,
  output: string,
  secrets: readonly string[],
  isPublic?: (part: string, secret: string) => boolean,
): void {
  const part = leakIn(output, secrets, isPublic);
  demand(part === undefined, `${what} shows ${part} of a secret: ${output.slice(0, 3000)}`);
}

/** From here on a key or a token is known by its looks, wherever it is. */
const KEY_LENGTH = 32;

/**
 * A slip may have moved a password to where a name belongs, with nothing of it left in its own field, or a short piece of
 * a token: then it is the name, and nobody could tell. What still stands in its own field too is never shown.
 */
function publicIn(raw: unknown): (part: string, secret: string) => boolean {
  if (raw === undefined) return () => false;
  const held: unknown[] = [];
  redactPlain(raw, { mark: (_, value) => held.push(value) });
  const [seen, kept] = [JSON.stringify(withoutSecrets(raw)), JSON.stringify(held)];
  const isWhole = (secret: string): boolean =>
    Array.from({ length: Math.max(0, secret.length - KEY_LENGTH + 1) }, (_, at) =>
      secret.slice(at, at + KEY_LENGTH),
    ).some((run) => seen.includes(run));
  return (part, secret) => leakIn(seen, [part]) !== undefined && leakIn(kept, [part]) === undefined && !isWhole(secret);
}

/** Whether it is valid. */
export async function checkAll({ text, secrets }: FuzzDocument): Promise<boolean> {
  const parsed = checkDocument(text, { file: "n.yaml", nowMs: NOW_MS });
  const { findings, document } = parsed;
  const isRefused = findings.some(({ severity }) => severity === "error");
  demand(isRefused === (document === undefined), "a document without errors is the one that is there");
  demand(
    findings.every(({ line = 0, column = 0 }) => line > 0 && column > 0),
    "every finding has its place",
  );
  const shown = { file: "n.yaml", ...parsed };
  const isPublic = publicIn(parsed.raw);
  hides("validate", showAsText(shown), secrets, isPublic);
  hides("validate --output json", JSON.stringify(showAsJson(shown)), secrets, isPublic);
  const [first] = findings;
  if (first !== undefined && text.length % 16 === 0) hides("explain", JSON.stringify(explain(first.path)), secrets);
  if (document === undefined) return false;
  // A slip may have put a part of one into a field that everybody sees.
  const rest = JSON.stringify(withoutSecrets(parsed.raw));
  const own = secretFields(document).flatMap(({ inline }) => (inline === undefined ? [] : [inline.reveal()]));
  checkOutputs(
    document,
    parsed.raw,
    own.filter((secret) => secret.length >= 6 && leakIn(rest, [secret]) === undefined),
  );
  resolveDevices(document);
  // Reading it back is reading it twice more.
  if (text.length % 4 === 0) await checkRecord(text, document);
  return true;
}

const SECRET_FIELDS = ["token", "authPass", "passphrase", "privateKey", "presharedKey"];

function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== "object" || value === null) return value;
  const others = Object.entries(value).filter(([key]) => !SECRET_FIELDS.includes(key));
  return others.map(([key, item]) => [key, withoutSecrets(item)]);
}

function checkOutputs(document: Document, raw: unknown, secrets: readonly string[]): void {
  const addresses = addressesToRecord(document, "192.0.2.10");
  const rendered = renderNode({ document, hostname: "", machineId: "0".repeat(32), addresses });
  hides("render", renderText(rendered), secrets);
  hides("render --output json", showData(renderData(rendered), "json"), secrets);
  hides(
    "a plan",
    rendered.files.map(({ path, content }) => unifiedDiff(path, undefined, content, KEY)).join(""),
    secrets,
  );
  hides("the redacted form", JSON.stringify(redact(document)), secrets);
  const mark = (path: string): string => `<${path}>`;
  hides("what readers see", stringify(redactPlain(raw, { isForReaders: true, mark })), secrets);
  const same = diffDocuments(document, document, { fingerprintKey: KEY });
  demand(same.result === "unchanged", `it differs from itself: ${diffText(same)}`);
  for (const [a, b] of [
    [other, document],
    [document, other],
  ] as const) {
    const diff = diffDocuments(a, b, { fingerprintKey: KEY });
    hides("diff", diffText(diff), secrets);
    hides("diff --output json", showData(diffData(diff), "json"), secrets);
  }
}

const DEVICE_FIELDS = ["device", "devices", "spares", "disk", "mirror"];

function resolveDevices(value: unknown, field = ""): void {
  const isDevice = typeof value === "string" || (typeof value === "object" && value !== null && !Array.isArray(value));
  if (isDevice && DEVICE_FIELDS.includes(field)) {
    for (const inventory of inventories) resolveDevice(value as DeviceRef, inventory);
  } else if (Array.isArray(value)) for (const item of value) resolveDevices(item, field);
  else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) if (key !== "k0s" && key !== "addons") resolveDevices(item, key);
  }
}

/** Recorded, written as source 1 and found again: the same text and the same document. */
async function checkRecord(given: string | Uint8Array, document: Document): Promise<void> {
  const text = typeof given === "string" ? given : new TextDecoder("utf-8", { ignoreBOM: true }).decode(given);
  const requester = { kind: "local" } as const;
  const { id } = state.documents.add({ text, atMs: NOW_MS, requester, origin: "apply" });
  demand(state.documents.get(id)?.text === text, "the record holds another text");
  const written = await writeSource(host, paths.config, text);
  demand(written.ok, "source 1 could not be written");
  const found = await findDocument(host, { paths, cmdline: "" });
  demand(found.kind === "found", `source 1 is not found: ${JSON.stringify(found).slice(0, 300)}`);
  demand(found.text === text, "source 1 holds another text");
  demand(JSON.stringify(parse(found.text).document) === JSON.stringify(document), "source 1 holds another document");
}
