/** The files and units of a node in service, beside what was recorded of them. Only reads. */
import type { FoundFile, FoundUnit } from "../apply/drift.ts";
import type { ExpectedNode } from "../apply/expected.ts";
import { handEditDiff, withPlaceholders } from "../apply/hand-edit.ts";
import type { Document } from "../config/document.ts";
import { parseUnit } from "../k0s/parse.ts";
import { K0S_CONFIG, K0S_MANIFESTS, UNIT_FOLDER } from "../k0s/paths.ts";
import { isSameCommand } from "../k0s/unit.ts";
import type { ReplacedDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { Host } from "../kit/ports.ts";
import type { Baseline } from "../state/model.ts";
import { sha256Of } from "../kit/sha256.ts";

export interface Recorded {
  /** Of this very record: what is found out about it holds for as long. */
  readonly id: string;
  readonly baseline: Baseline;
  readonly replaced: readonly ReplacedDisk[];
  /** Stack that GitOps owns now. */
  readonly handedOver: string | undefined;
  readonly fingerprintKey: string;
  /** Absent where this release can't read the recorded document: then only digests are compared. */
  readonly document?: Document;
  readonly expected?: ExpectedNode;
  /** Why it can't, where there is no document. */
  readonly refused?: Finding;
}

/** What was rendered and is still this node's: a stack that was handed over has moved out. */
export const ownPaths = ({ baseline, handedOver }: Recorded): readonly string[] =>
  Object.keys(baseline.rendered).filter(
    (path) => handedOver === undefined || !path.startsWith(`${K0S_MANIFESTS}/${handedOver}/`),
  );

/** What is longer is no file of ours any more, and told without a diff. */
const MAX_DIFFED_BYTES = 512 * 1024;
const MAX_BYTES = 16 * 1024 * 1024;
const KEPT_DIFFS = 200;

/** Each content that was found is compared once. */
export function fileReader(
  host: Host,
  renderVersion: number,
): (recorded: Recorded, path: string) => Promise<FoundFile> {
  const diffs = new Map<string, string | undefined>();
  return async (recorded, path) => {
    const bytes = await host.files.read(path, { maxBytes: MAX_BYTES });
    if (!bytes.ok) return { path, is: bytes.error.code === "ENOENT" ? "missing" : "unreadable" };
    const sha256 = sha256Of(bytes.value);
    if (sha256 === recorded.baseline.rendered[path]) return { path, is: "as-recorded" };
    const key = `${recorded.id} ${path} ${sha256}`;
    if (diffs.size > KEPT_DIFFS) diffs.clear();
    if (!diffs.has(key)) diffs.set(key, diffOf(recorded, renderVersion, path, bytes.value));
    const diff = diffs.get(key);
    return { path, is: "changed", ...(diff === undefined ? {} : { diff }) };
  };
}

/** Undefined where what is rendered now is not what was recorded, or nothing of it can be shown. */
function diffOf(
  { baseline, expected, fingerprintKey }: Recorded,
  renderVersion: number,
  path: string,
  found: Uint8Array,
): string | undefined {
  const file = expected?.files.get(path);
  if (file === undefined || found.length > MAX_DIFFED_BYTES) return undefined;
  const isRecorded = file.content.includes("<secret:")
    ? baseline.renderVersion === renderVersion
    : sha256Of(file.content) === baseline.rendered[path];
  if (!isRecorded) return undefined;
  const { secretFingerprints } = baseline;
  const text = new TextDecoder().decode(found);
  return handEditDiff({ expected: file, found: text, secretFingerprints, fingerprintKey });
}

/**
 * What this release renders otherwise than was recorded. A file with a secret in it is compared with what is there, the
 * secret put aside; one that is nothing but a secret is of the first boot.
 */
export async function differingFiles(host: Host, recorded: Recorded): Promise<readonly string[]> {
  const { baseline, expected, fingerprintKey } = recorded;
  if (expected === undefined) return [];
  const { secretFingerprints } = baseline;
  const differing = ownPaths(recorded).filter((path) => !expected.files.has(path));
  for (const [path, { content }] of expected.files) {
    if (!content.includes("<secret:")) {
      if (sha256Of(content) !== baseline.rendered[path]) differing.push(path);
      continue;
    }
    if (path !== K0S_CONFIG) continue;
    const found = await host.files.readText(path, { maxBytes: MAX_BYTES });
    const text = found.ok ? withPlaceholders(found.value, { secretFingerprints, fingerprintKey }) : undefined;
    if (text !== content) differing.push(path);
  }
  return differing;
}

/** Those that systemd can be asked about. */
export async function readUnits(host: Host, { expected }: Recorded): Promise<readonly FoundUnit[]> {
  const units = await Promise.all((expected?.units ?? []).map((name) => readUnit(host, name, expected)));
  return units.filter((unit) => unit !== undefined);
}

async function readUnit(host: Host, name: string, expected: ExpectedNode | undefined): Promise<FoundUnit | undefined> {
  const status = await host.systemd.status(name);
  if (!status.ok) return undefined;
  if (!name.startsWith("k0s") || expected?.k0s === undefined) return { name, status: status.value };
  const text = await host.files.readText(`${UNIT_FOLDER}/${name}`, { maxBytes: 64 * 1024 });
  const command = text.ok ? parseUnit(text.value) : undefined;
  const isOther = command !== undefined && !(command.ok && isSameCommand(command.value, expected.k0s));
  return { name, status: status.value, isOther };
}
