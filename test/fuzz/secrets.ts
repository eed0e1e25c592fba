/** Secrets that are recognised in any output, also cut, escaped or spread over lines. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** A whole number from 0 to `max`. */
export type Draw = (max: number) => number;

export const pick = <T>(draw: Draw, list: readonly T[]): T => list[draw(list.length - 1)] as T;

/** Nothing else in a document or in a message has six of these in a row. */
const MARKS = "QXZJ7395";
const mark = (draw: Draw, length: number): string => {
  const text = Array.from({ length: length - 1 }, () => pick(draw, [...MARKS])).join("");
  // A digit, so that no secret is a plain word.
  return `7${text}`;
};

export const AUTHORITY = readFileSync(join(import.meta.dir, "testdata/authority.pem"), "utf8");

const kubeconfig = (user: string): string =>
  JSON.stringify({
    clusters: [
      {
        cluster: {
          server: "https://192.0.2.10:6443",
          "certificate-authority-data": Buffer.from(AUTHORITY).toString("base64"),
        },
      },
    ],
    contexts: [{ name: "k0s", context: { user } }],
    "current-context": "k0s",
    users: [{ name: user, user: { token: "zzqq77.zzqq77xxjj995533" } }],
  });
const tokenFor = (user: string): string => gzipSync(kubeconfig(user)).toString("base64");

export const WORKER_TOKEN = tokenFor("kubelet-bootstrap");
export const CONTROLLER_TOKEN = tokenFor("controller-bootstrap");

/** For VRRP: up to eight characters. */
export const password = (draw: Draw): string => mark(draw, 6 + draw(2));

/** Base64 of 32 bytes: the last character holds four bits. */
export const key32 = (draw: Draw): string => `${mark(draw, 42)}Q=`;

/** With all that has to be quoted or escaped somewhere. */
export function passphrase(draw: Draw): string {
  const specials = ["", "", '"', "\\", " ", "\n", "é", "'", ": ", "#", "\u2028", "$", "%", "{", "\t", "😀"];
  return Array.from({ length: 2 + draw(6) }, () => `${mark(draw, 3)}${pick(draw, specials)}`).join("");
}

const WINDOW = 6;

/** Without escapes, quotes, backslashes and white space, which is what may stand between the parts of a secret. */
function plain(text: string): string {
  return text
    .replace(/\\+u([0-9a-f]{4})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .replace(/\\[nrtbf]|[\\"'\s\u2028]/g, "");
}

/** The first part of a secret that stands in a text; not those that are public by now. */
export function leakIn(
  output: string,
  secrets: readonly string[],
  isPublic: (part: string, secret: string) => boolean = () => false,
): string | undefined {
  if (secrets.length === 0) return undefined;
  const text = plain(output);
  for (const secret of secrets) {
    // What every gzip begins with is in the examples of `corium explain` too.
    const bare = plain(secret).replace(/^H4sIA+/, "");
    for (let at = 0; at + WINDOW <= bare.length; at++) {
      const part = bare.slice(at, at + WINDOW);
      if (text.includes(part) && !isPublic(part, secret)) return part;
    }
  }
  return undefined;
}
