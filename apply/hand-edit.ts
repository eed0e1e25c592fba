/** A rendered file that somebody changed: what was recorded against what is there, without secrets. */
import { parse, parseAllDocuments } from "yaml";
import { K0S_CONFIG, K0S_MANIFESTS } from "../k0s/paths.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { fingerprint } from "./fingerprint.ts";
import { unifiedDiff } from "./show.ts";

export interface HandEdit {
  /** As the renderer makes it: secrets stand as `<secret:FIELD>`. */
  readonly expected: RenderedFile;
  readonly found: string;
  /** Of the baseline, by field path. */
  readonly secretFingerprints: Readonly<Record<string, string>>;
  readonly fingerprintKey: string;
}

const SECRET = /<secret:[^>]+>/;

/** By hand anything may stand anywhere: what follows such a name on its line is one, in YAML and in unit files. */
const SECRET_LINE =
  /^(.*?(?:pass|password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key|preshared[_-]?key)["']?[ \t]*[:=][ \t]*)(\S.*)$/gim;

/** Undefined where nothing of it can be shown: the whole file is a secret, or it is broken so that none can be told. */
export function handEditDiff({ expected, found, secretFingerprints, fingerprintKey }: HandEdit): string | undefined {
  const { path, content } = expected;
  if (path !== K0S_CONFIG && SECRET.test(content)) return undefined;
  if (isBroken(path, found)) return undefined;
  const known = new Map(Object.entries(secretFingerprints).map(([field, print]) => [print, field]));
  const masked = (text: string): string =>
    text.replace(SECRET_LINE, (_line, head: string, value: string) => {
      const scalar = scalarOf(value);
      if (SECRET.test(scalar)) return `${head}"${scalar}"`;
      const print = fingerprint(fingerprintKey, scalar);
      const field = known.get(print);
      return `${head}"${field === undefined ? print : `<secret:${field}>`}"`;
    });
  return unifiedDiff(path, masked(content), masked(found), fingerprintKey);
}

/** k0s.yaml with the secret that it was rendered with put back to its place holder: to compare with what is rendered. */
export function withPlaceholders(found: string, edit: Pick<HandEdit, "secretFingerprints" | "fingerprintKey">): string {
  const known = new Map(Object.entries(edit.secretFingerprints).map(([field, print]) => [print, field]));
  return found.replace(/^([ \t]*(?:- )?authPass: )(\S.*)$/gm, (line, head: string, value: string) => {
    const field = known.get(fingerprint(edit.fingerprintKey, scalarOf(value)));
    return field === undefined ? line : `${head}"<secret:${field}>"`;
  });
}

/** Values of a Secret are told by its kind, which only whole YAML has. */
const isBroken = (path: string, text: string): boolean =>
  path.startsWith(`${K0S_MANIFESTS}/`) &&
  parseAllDocuments(text, { uniqueKeys: false }).some((document) => "errors" in document && document.errors.length > 0);

function scalarOf(value: string): string {
  try {
    const parsed: unknown = parse(value);
    return typeof parsed === "string" ? parsed : value;
  } catch {
    return value;
  }
}
