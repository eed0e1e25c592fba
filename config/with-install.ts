/** A document with another `install`: what somebody decided at the console, in the words of the document. Pure. */
import { isMap, parseDocument, stringify } from "yaml";
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { DeviceRef } from "./document.ts";

export interface InstallBlock {
  readonly disk: DeviceRef;
  readonly mirror?: DeviceRef;
  readonly wipe: boolean;
}

/** `text` has been validated; its comments and all other blocks stay as they are. */
export function withInstall(text: string, install: InstallBlock): Result<string, AppError> {
  const { disk, mirror, wipe } = install;
  const block = {
    disk,
    ...(mirror === undefined ? {} : { mirror }),
    // Without data on the disk no consent is needed, and none is left behind.
    ...(wipe ? { wipe: true } : {}),
  };
  const document = parseDocument(text, { version: "1.2", uniqueKeys: false });
  // Empty, or comments only.
  if (document.contents === null && document.errors.length === 0) return ok(`${text}${stringify({ install: block })}`);
  // In a cloud-config ours is below one key of it.
  const isEmbedded = document.has("corium");
  const root = isEmbedded ? document.get("corium", true) : document.contents;
  if (document.errors.length > 0 || !isMap(root)) {
    return fail("not-editable", "the present document can't be given another install block", {
      hint: "write the block into it yourself",
    });
  }
  root.set("install", document.createNode(block));
  return ok(document.toString({ lineWidth: 0 }));
}
