/** Every file that a node gets from its document: one code path for `corium render`, first boot and each apply. */
import type { DiskSpec, Document, LuksSpec, RaidSpec } from "../config/document.ts";
import { unitOf } from "../k0s/argv.ts";
import { K0S_BINARY } from "../k0s/paths.ts";
import { renderK0s } from "../k0s/render.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { Finding } from "../kit/finding.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { cryptsetupUnit } from "../luks/argv.ts";
import { CRYPTTAB, renderCrypttab } from "../luks/render.ts";
import { renderArrayConfig } from "../raid/render.ts";
import { renderWireguard } from "../wireguard/render.ts";
import { chooseHostname, renderHosts } from "./hostname.ts";
import { mountStep } from "./mount-plan.ts";
import { renderTimers } from "./timers.ts";

export interface RenderInput {
  readonly document: Document;
  /** The present one; node.name goes before it, a generic one is replaced. */
  readonly hostname: string;
  readonly machineId: string;
  readonly addresses: RecordedAddresses;
  /** Stack that GitOps owns now: the document may still have it, the node does not. */
  readonly handedOver?: string;
  /** Of what this node has made, for rendering what it has; absent: a placeholder `<uuid:NAME>`. */
  readonly uuids?: NodeUuids;
}

/** By name; undefined for what was not made here. */
export interface NodeUuids {
  /** Of the array, 8:8:8:8 with colons. */
  readonly array: (name: string) => string | undefined;
  /** Of the header of an encrypted volume. */
  readonly volume: (name: string) => string | undefined;
  readonly filesystem: (name: string) => string | undefined;
}

const NO_UUIDS: NodeUuids = { array: () => undefined, volume: () => undefined, filesystem: () => undefined };

export interface RenderedNode {
  readonly hostname: string;
  /** Sorted by path. Secrets stand as `<secret:FIELD>`, UUIDs that are chosen on the node as `<uuid:NAME>`. */
  readonly files: readonly RenderedFile[];
  /** Programs that make the node what the files say, with all arguments. */
  readonly argv: readonly (readonly string[])[];
  /** Units that are enabled. */
  readonly units: readonly string[];
  readonly findings: readonly Finding[];
}

export function renderNode(input: RenderInput): RenderedNode {
  const { document, addresses } = input;
  const hostname = chooseHostname(document, input.hostname, input.machineId);
  const manifests = document.manifests.filter(({ name }) => name !== input.handedOver);
  const k0s = renderK0s({ document: { ...document, manifests }, addresses });
  const timers = renderTimers(document);
  const storage = renderStorage(document, input.uuids ?? NO_UUIDS);
  const files = [
    { path: "/etc/hostname", mode: 0o644, content: `${hostname}\n` },
    { path: "/etc/hosts", mode: 0o644, content: renderHosts(hostname) },
    ...storage.files,
    ...renderWireguard(document),
    ...k0s.files,
    ...timers.files,
  ];
  return {
    hostname,
    files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    argv: k0s.installArgv === null ? [] : [[K0S_BINARY, ...k0s.installArgv]],
    units: [
      ...storage.units,
      ...(k0s.installArgv === null ? [] : [`${unitOf(document)}.service`]),
      ...timers.units,
    ].toSorted(),
    findings: k0s.findings,
  };
}

interface RenderedStorage {
  readonly files: readonly RenderedFile[];
  readonly units: readonly string[];
}

function renderStorage(document: Document, uuids: NodeUuids): RenderedStorage {
  const arrays = document.raid.map((array) =>
    renderArrayConfig({
      name: array.name,
      uuid: uuids.array(array.name) ?? `<uuid:${array.name}>`,
      memberCount: array.devices.length + array.spares.length,
    }),
  );
  const crypttab = renderCrypttab(
    document.luks.map(({ name, unlock }) => ({
      name,
      unlock,
      uuid: uuids.volume(name) ?? `<uuid:luks:${name}>`,
    })),
  );
  const volumes = crypttab === undefined ? [] : [{ path: CRYPTTAB, mode: 0o644, content: crypttab }];
  const uuidOf = (name: string): string => uuids.filesystem(name) ?? `<uuid:${name}>`;
  const mounts = [
    ...[...document.disks, ...document.raid].flatMap((spec) => renderMount(spec, document, uuidOf)),
    ...document.luks.flatMap((spec) => renderMount(spec, document, uuidOf, cryptsetupUnit(spec.name))),
  ];
  return {
    files: [...arrays, ...volumes, ...mounts.flatMap((mount) => mount.files)],
    units: mounts.map((mount) => mount.unit),
  };
}

function renderMount(
  { name, mountPoint: point, filesystem }: DiskSpec | RaidSpec | LuksSpec,
  { role }: Document,
  uuidOf: (name: string) => string,
  volumeUnit?: string,
): ReturnType<typeof mountStep>[] {
  if (point === undefined || filesystem === "none") return [];
  const order = { id: `mount:${name}`, name, point, uuid: uuidOf(name), filesystem, role };
  return [mountStep(volumeUnit === undefined ? order : { ...order, volumeUnit })];
}
