/** Rendered files as people may see them: unified diffs without secrets. */
import { createTwoFilesPatch } from "diff";
import { isMap, isScalar, parseAllDocuments } from "yaml";
import { K0S_MANIFESTS } from "../k0s/paths.ts";
import { fingerprint, maskText } from "./fingerprint.ts";

/** The values of a Kubernetes Secret are secrets, whatever their keys are called. */
function maskManifest(text: string, key: string): string {
  const documents = parseAllDocuments(text);
  const secrets = documents.filter((document) => document.get("kind") === "Secret");
  if (secrets.length === 0) return text;
  for (const document of secrets) {
    for (const field of ["data", "stringData"]) {
      const data = document.get(field);
      if (!isMap(data)) continue;
      for (const pair of data.items) {
        const value = isScalar(pair.value) ? String(pair.value.value) : JSON.stringify(pair.value);
        document.setIn([field, isScalar(pair.key) ? pair.key.value : pair.key], fingerprint(key, value));
      }
    }
  }
  return documents.map(String).join("");
}

const shown = (path: string, text: string, key: string): string =>
  maskText(path.startsWith(`${K0S_MANIFESTS}/`) ? maskManifest(text, key) : text, key);

/** `undefined`: the file is not there. Paths as git writes them; no time stamps, so equal input gives equal text. */
export function unifiedDiff(
  path: string,
  old: string | undefined,
  next: string | undefined,
  fingerprintKey: string,
): string {
  const text = createTwoFilesPatch(
    old === undefined ? "/dev/null" : `a${path}`,
    next === undefined ? "/dev/null" : `b${path}`,
    old === undefined ? "" : shown(path, old, fingerprintKey),
    next === undefined ? "" : shown(path, next, fingerprintKey),
    "",
    "",
    { context: 3 },
  );
  return text.replace(/^=+\n/, "").replace(/^((?:---|\+\+\+) .*)\t$/gm, "$1");
}
