/** Programs of a fake host that has media: what lsblk says is captured, mounting and reading are as the tools do it. */
import type { ExecRequest } from "../../kit/ports.ts";
import type { FakeHost, FakeProgram } from "./fake-host.ts";

export interface FakeMedium {
  readonly filesystem: string;
  readonly label: string;
  readonly files: Readonly<Record<string, string>>;
  /** The program that does this with it does not come back in time, or finds the medium damaged. */
  readonly hangs?: "blkid" | "mount" | "find" | "base64" | "umount";
  readonly damagedFor?: "blkid" | "mount" | "find" | "base64";
}

const MOUNTS = "/proc/self/mounts";

/** What must be there before the first mount. */
export const mediaFiles: Readonly<Record<string, string>> = { [MOUNTS]: "proc /proc proc rw 0 0\n" };

/** `media`: by device; the map may be changed between two looks, as people do. */
export function mediaPrograms(
  lsblk: () => string,
  media: Map<string, FakeMedium>,
): Readonly<Record<string, FakeProgram>> {
  const mountedAt = new Map<string, FakeMedium>();
  const mediumOf = (path: string): FakeMedium | undefined =>
    media.get(path) ?? [...mountedAt].find(([folder]) => path === folder || path.startsWith(`${folder}/`))?.[1];
  const faulty =
    (name: NonNullable<FakeMedium["hangs"]>, path: (request: ExecRequest) => string, run: FakeProgram): FakeProgram =>
    (request, fake) => {
      const medium = mediumOf(path(request));
      if (medium?.hangs === name && !request.argv.includes("--lazy")) return { exitCode: null, timedOut: true };
      if (medium?.damagedFor === name) return { exitCode: 1, stderr: `${name}: Input/output error` };
      return run(request, fake);
    };
  const last = ({ argv }: ExecRequest): string => argv.at(-1) ?? "";
  const lineOf = (device: string, folder: string): string => `${device} ${folder} x ro 0 0\n`;
  const readMounts = (fake: FakeHost): string => fake.text(MOUNTS) ?? "";
  return {
    udevadm: () => "",
    lsblk,
    blkid: faulty("blkid", last, (request) => {
      const medium = media.get(last(request));
      if (medium === undefined) return { exitCode: 2 };
      return `DEVNAME=${last(request)}\nLABEL=${medium.label}\nTYPE=${medium.filesystem}\nUSAGE=filesystem\n`;
    }),
    mount: faulty(
      "mount",
      ({ argv }) => argv.at(-2) ?? "",
      ({ argv }, fake) => {
        const [device = "", folder = ""] = argv.slice(-2);
        const medium = media.get(device);
        if (medium === undefined) return { exitCode: 32, stderr: `mount: ${folder}: no medium found on ${device}.` };
        mountedAt.set(folder, medium);
        fake.put(MOUNTS, readMounts(fake) + lineOf(device, folder));
        for (const [name, content] of Object.entries(medium.files)) fake.put(`${folder}/${name}`, content);
        return "";
      },
    ),
    umount: faulty("umount", last, (request, fake) => {
      const folder = last(request);
      for (const path of fake.paths(`${folder}/`)) fake.drop(path);
      mountedAt.delete(folder);
      const left = readMounts(fake)
        .split("\n")
        .filter((line) => line.split(" ")[1] !== folder);
      fake.put(MOUNTS, left.join("\n"));
      return "";
    }),
    find: faulty(
      "find",
      ({ argv }) => argv[1] ?? "",
      ({ argv }, fake) => {
        const folder = `${argv[1] ?? ""}/`;
        return fake
          .paths(folder)
          .map((path) => `f ${fake.node(path)?.content.length ?? 0} ${path.slice(folder.length)}\0`)
          .join("");
      },
    ),
    base64: faulty("base64", last, (request, fake) =>
      Buffer.from(fake.node(last(request))?.content ?? []).toString("base64"),
    ),
  };
}
