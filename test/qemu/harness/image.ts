/** The image of the tests: built from this tree, with the stand-in for k0s and a root shell on ttyS1. */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bakedSegment } from "../../../iso/baked.ts";
import type { VmOptions } from "./options.ts";

export interface TestImage {
  readonly iso: string;
  /** vmlinuz, initrd, initrd-net, root.squashfs, boot.ipxe. */
  readonly pxe: string;
}

const repository = join(import.meta.dir, "../../..");
const images = join(repository, "out/vm-image");

const described = (directory: string): TestImage => {
  const iso = readdirSync(directory)
    .filter((name) => name.endsWith(".iso"))
    .toSorted((a, b) => statSync(join(directory, b)).mtimeMs - statSync(join(directory, a)).mtimeMs)[0];
  if (iso === undefined) throw new Error(`there is no ISO in ${directory}`);
  return { iso: join(directory, iso), pxe: join(directory, "pxe") };
};

/** Builds it; the stages are cached by what goes into them. The runner builds once and says where: CORIUM_VM_IMAGE. */
export async function buildTestImage(document?: string): Promise<TestImage> {
  const key = document === undefined ? "plain" : createHash("sha256").update(document).digest("hex").slice(0, 12);
  const directory = join(images, key);
  mkdirSync(directory, { recursive: true });
  const argv = [process.execPath, "iso/build.ts", "--k0s", "sim", "--dev-shell", "--out", directory];
  if (document !== undefined) {
    writeFileSync(join(directory, "config.yaml"), document);
    argv.push("--config", join(directory, "config.yaml"));
  }
  const child = Bun.spawn(argv, { cwd: repository, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`the image of the tests was not built: exit ${code}\n${out}${err}`);
  return described(directory);
}

/** With a document baked into the medium, when one is given. */
export async function testImage(document?: string): Promise<TestImage> {
  const given = process.env["CORIUM_VM_IMAGE"];
  if (given !== undefined && document === undefined) return described(given);
  return await buildTestImage(document);
}

/** What the build says of an image, and what its boot files say again. */
export interface ImageFacts {
  readonly version: string;
  readonly rootHash: string;
  readonly hashOffsetBytes: number;
  /** Of the root's file, which a network boot checks. */
  readonly sha256: string;
  readonly bootFiles: string;
}

export const imageFacts = ({ pxe }: TestImage): ImageFacts =>
  JSON.parse(readFileSync(join(dirname(pxe), "image.json"), "utf8")) as ImageFacts;

/**
 * The live system straight from its kernel, with the ISO in the drive: no wait for firmware and boot menu, further
 * arguments of the command line, and a document as if it were baked into the medium.
 */
export function liveBoot(
  image: TestImage,
  more: { readonly document?: string; readonly append?: string; readonly directory?: string } = {},
): Pick<VmOptions, "kernel" | "media"> {
  const line = /^kernel vmlinuz initrd=initrd-net (.*) corium\.root=/m.exec(
    readFileSync(join(image.pxe, "boot.ipxe"), "utf8"),
  )?.[1];
  if (line === undefined) throw new Error("boot.ipxe has no kernel line as expected");
  let initrd = join(image.pxe, "initrd");
  if (more.document !== undefined) {
    const key = createHash("sha256").update(more.document).digest("hex").slice(0, 12);
    const copy = join(image.pxe, `../initrd-${key}`);
    copyFileSync(initrd, copy);
    // A further archive begins at a multiple of four, as boot loaders see to it.
    const padding = (4 - (statSync(initrd).size % 4)) % 4;
    writeFileSync(copy, Buffer.concat([Buffer.alloc(padding), bakedSegment(more.document)]), { flag: "a" });
    initrd = copy;
  }
  return {
    kernel: { path: join(image.pxe, "vmlinuz"), initrd, append: `${line} ${more.append ?? ""}`.trim() },
    media: [{ path: image.iso }],
  };
}
