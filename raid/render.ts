import type { RenderedFile } from "../kit/rendered.ts";

export interface RecordedArray {
  readonly name: string;
  /** 8:8:8:8 with colons. */
  readonly uuid: string;
  /** Members and spares; the boot waits for all of them, for a bounded time. */
  readonly memberCount: number;
}

/** The one file that makes an array start at boot; `corium-arrays.service` reads both of its lines. */
export function renderArrayConfig(array: RecordedArray): RenderedFile {
  return {
    path: `/etc/mdadm/mdadm.conf.d/corium-${array.name}.conf`,
    mode: 0o644,
    content: [
      "# Written by corium: an array of this node. Arrays that no such file names are never assembled.",
      `# corium-members=${array.memberCount}`,
      `ARRAY /dev/md/${array.name} metadata=1.2 UUID=${array.uuid}`,
      "",
    ].join("\n"),
  };
}
