/** Pure: an initramfs archive (cpio "newc", Documentation/driver-api/early-userspace/buffer-format.rst). */
export interface CpioEntry {
  readonly path: string;
  /** With the file type: 0o100755 a program, 0o40755 a folder, 0o120777 a symlink, 0o20600 a character device. */
  readonly mode: number;
  readonly content?: Uint8Array | string;
  readonly device?: readonly [major: number, minor: number];
}

export function cpio(entries: readonly CpioEntry[]): Buffer {
  const parts: Buffer[] = [];
  let inode = 0;
  for (const entry of [...entries, { path: "TRAILER!!!", mode: 0 }]) {
    const { path, mode, content = "", device = [0, 0] }: CpioEntry = entry;
    const body = Buffer.from(content as string);
    const name = Buffer.from(`${path}\0`);
    const fields = [++inode, mode, 0, 0, 1, 0, body.length, 0, 0, device[0], device[1], name.length, 0];
    const head = `070701${fields.map((field) => field.toString(16).padStart(8, "0")).join("")}`;
    parts.push(padded(Buffer.concat([Buffer.from(head), name])), padded(body));
  }
  return Buffer.concat(parts);
}

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
