import { z } from "zod";

export interface MountedFilesystem {
  readonly point: string;
  readonly source: string;
  readonly filesystem: string;
  readonly uuid?: string;
  readonly sizeBytes?: number;
  readonly availableBytes?: number;
  readonly isReadOnly: boolean;
}

/** `NodeAnswer.storage.mounts[]`. */
export interface MountReport {
  readonly path: string;
  readonly source: string;
  readonly filesystem: string;
  readonly mounted: boolean;
  readonly sizeBytes?: number;
  readonly availableBytes?: number;
}

const count = z.union([z.number(), z.string()]).nullish();
const found = z.looseObject({
  filesystems: z.array(
    z.looseObject({
      target: z.string(),
      source: z.string().nullish(),
      fstype: z.string().nullish(),
      uuid: z.string().nullish(),
      size: count,
      avail: count,
      options: z.string().nullish(),
    }),
  ),
});

/** `findmnt --json -b --list`; a later mount on the same point hides the earlier one, so the last one counts. */
export function parseFindmnt(stdout: string): readonly MountedFilesystem[] {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return [];
  }
  const parsed = found.safeParse(json);
  if (!parsed.success) return [];
  const mounts = parsed.data.filesystems.map((each): MountedFilesystem => {
    const size = toNumber(each.size);
    const available = toNumber(each.avail);
    return {
      point: each.target,
      source: each.source ?? "",
      filesystem: each.fstype ?? "",
      isReadOnly: (each.options ?? "").split(",").includes("ro"),
      ...(each.uuid === null || each.uuid === undefined ? {} : { uuid: each.uuid }),
      ...(size === undefined ? {} : { sizeBytes: size }),
      ...(available === undefined ? {} : { availableBytes: available }),
    };
  });
  return [...new Map(mounts.map((mount) => [mount.point, mount])).values()];
}

/** What is not mounted is reported too, as what it is: not mounted. */
export function reportMounts(points: readonly string[], mounts: readonly MountedFilesystem[]): readonly MountReport[] {
  return points.map((path) => {
    const mount = mounts.find((each) => each.point === path);
    if (mount === undefined) return { path, source: "", filesystem: "", mounted: false };
    const { source, filesystem, sizeBytes, availableBytes } = mount;
    return {
      path,
      source,
      filesystem,
      mounted: true,
      ...(sizeBytes === undefined ? {} : { sizeBytes }),
      ...(availableBytes === undefined ? {} : { availableBytes }),
    };
  });
}

const toNumber = (value: number | string | null | undefined): number | undefined => {
  const number = value === null || value === undefined ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : undefined;
};
