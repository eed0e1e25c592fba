/**
 * A document baked into a medium: a cpio archive in the kernel's "newc" format
 * (Documentation/driver-api/early-userspace/buffer-format.rst) that is loaded behind the initramfs.
 */

const align = (length: number): number => (4 - (length % 4)) % 4;

function entry(name: string, mode: number, content: Uint8Array, inode: number): Uint8Array[] {
  const field = (value: number): string => value.toString(16).padStart(8, "0").toUpperCase();
  const nameBytes = new TextEncoder().encode(`${name}\0`);
  const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, nameBytes.length, 0];
  const header = new TextEncoder().encode(`070701${fields.map(field).join("")}`);
  return [
    header,
    nameBytes,
    new Uint8Array(align(header.length + nameBytes.length)),
    content,
    new Uint8Array(align(content.length)),
  ];
}

/** Holds `/corium-baked/config.yaml`, 0600: it may hold secrets. */
export function bakedSegment(document: string): Uint8Array {
  const parts = [
    ...entry("corium-baked", 0o040700, new Uint8Array(), 1),
    ...entry("corium-baked/config.yaml", 0o100600, new TextEncoder().encode(document), 2),
    ...entry("TRAILER!!!", 0, new Uint8Array(), 0),
  ];
  const bytes = new Uint8Array(Math.ceil(parts.reduce((sum, part) => sum + part.length, 0) / 512) * 512);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
