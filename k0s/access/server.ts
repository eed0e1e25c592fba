/** Where a kubeconfig leads, and whether who is there can prove it. */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { isMap, isScalar, isSeq, parseDocument } from "yaml";
import { type AppError, fail } from "../../kit/app-error.ts";
import { ok, type Result } from "../../kit/result.ts";
import { Secret } from "../../kit/secret.ts";

export const API_SERVER_PORT = 6443;

/** `host`, `host:port`, `[v6]:port`, a bare IPv6 address, or an https URL of the same; undefined for anything else. */
export function parseServer(text: string): URL | undefined {
  const whole = text.includes("://") ? text : `https://${isIP(text) === 6 ? `[${text}]` : text}`;
  if (!/^https:\/\/(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\/?$/.test(whole) || !URL.canParse(whole)) {
    return undefined;
  }
  const url = new URL(whole);
  if (url.port === "" && !/:443\/?$/.test(whole)) url.port = String(API_SERVER_PORT);
  return url;
}

/** As kubeconfigs write it: no slash at the end. */
export const formatServer = (url: URL): string => url.href.replace(/\/$/, "");

/** Without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

/** The kubeconfig with another server, and the one that it has then. `choose` gets the one that k0s wrote. */
export function withServer(
  kubeconfig: Secret,
  choose: (own: URL) => URL,
): Result<{ readonly kubeconfig: Secret; readonly server: URL }, AppError> {
  const document = parseDocument(kubeconfig.reveal(), { version: "1.2" });
  const clusters = document.get("clusters");
  const first: unknown = isSeq(clusters) ? clusters.items[0] : undefined;
  const cluster = isMap(first) ? first.get("cluster") : undefined;
  const server = isMap(cluster) ? cluster.get("server", true) : undefined;
  const own = isScalar(server) ? parseServer(String(server.value)) : undefined;
  if (own === undefined || !isMap(cluster)) {
    return fail("kubeconfig", "k0s kubeconfig admin printed something that is no kubeconfig");
  }
  const chosen = choose(own);
  cluster.set("server", formatServer(chosen));
  const text = document.toString({ lineWidth: 0 });
  return ok({ kubeconfig: new Secret(kubeconfig.field, text), server: chosen });
}

/** Does the API server's certificate name this host? `names`: what it names instead, as the certificate writes it. */
export function isNamedIn(
  pem: string,
  host: string,
): { readonly isNamed: boolean; readonly names: string } | undefined {
  try {
    const certificate = new X509Certificate(pem);
    const found = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
    const names = (certificate.subjectAltName ?? "").replaceAll(/(?:DNS|IP Address):/g, "");
    return { isNamed: found !== undefined, names };
  } catch {
    return undefined;
  }
}
