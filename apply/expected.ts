/** What of a node was recorded, rendered again from its baseline: to compare with, and to say what differs. */
import type { Document } from "../config/document.ts";
import { installArgv } from "../k0s/argv.ts";
import { wantedCommand } from "../k0s/unit.ts";
import type { UnitCommand } from "../k0s/model.ts";
import type { OwnedStorage } from "../kit/disk.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { type NodeUuids, renderNode } from "../provision/render.ts";
import type { NodeFacts } from "./plan.ts";

export interface ExpectedNode {
  readonly files: ReadonlyMap<string, RenderedFile>;
  /** Those that are enabled, mounts aside: k0s and timers. */
  readonly units: readonly string[];
  /** What the unit of k0s runs. */
  readonly k0s?: UnitCommand;
}

export interface ExpectedInput {
  readonly document: Document;
  /** As recorded. */
  readonly node: NodeFacts;
  readonly owned: readonly OwnedStorage[];
  /** Stack that GitOps owns now. */
  readonly handedOver?: string | undefined;
}

export function expectedNode({ document, node, owned, handedOver }: ExpectedInput): ExpectedNode {
  const { hostname, machineId, addresses } = node;
  const rendered = renderNode({
    document,
    hostname,
    machineId,
    addresses,
    uuids: uuidsOf(owned),
    ...(handedOver === undefined ? {} : { handedOver }),
  });
  const argv = installArgv(document, addresses);
  return {
    files: new Map(rendered.files.map((file) => [file.path, file])),
    units: rendered.units.filter((unit) => !unit.endsWith(".mount")),
    ...(argv === null ? {} : { k0s: wantedCommand(argv) }),
  };
}

function uuidsOf(owned: readonly OwnedStorage[]): NodeUuids {
  const find = (kind: OwnedStorage["kind"], name: string) =>
    owned.find((one) => one.kind === kind && one.name === name);
  return {
    array: (name) => find("raid", name)?.uuid,
    volume: (name) => find("luks", name)?.uuid,
    filesystem: (name) =>
      find("raid", name)?.filesystemUuid ?? find("luks", name)?.filesystemUuid ?? find("disk", name)?.uuid,
  };
}
