import { rootCertificates } from "node:tls";

import type { AppError } from "../kit/app-error.ts";
import { appError } from "../kit/app-error.ts";
import type { Http, HttpRequest } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";

const MAX_REDIRECTS = 5;

/** Verification is never switched off globally: `isPinned` does so for one request whose hash the caller checks. */
export const realHttp: Http = async (request) => {
  const signal = AbortSignal.timeout(request.timeoutMs);
  let url: URL;
  try {
    url = new URL(request.url);
  } catch {
    return err(appError("protocol", "the address is not a URL"));
  }
  const origin = url.origin;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    if (url.protocol !== "https:" && !(url.protocol === "http:" && request.isPinned === true)) {
      const code = hop === 0 ? "protocol" : "redirect";
      return err(
        appError(code, `${shown(url)} is not https`, { hint: "serve it over https or pin it by its SHA-256" }),
      );
    }
    const answer = await fetchOnce(url, request, url.origin === origin, signal);
    if (!answer.ok) return answer;
    if (answer.value.location === undefined || request.post !== undefined) {
      return ok({ status: answer.value.status, body: answer.value.body, url: url.href });
    }
    try {
      url = new URL(answer.value.location, url);
    } catch {
      return err(appError("redirect", `${shown(url)} redirects to something that is not a URL`));
    }
  }
  return err(appError("redirect", `${shown(url)} redirects more than ${MAX_REDIRECTS} times`));
};

interface Answer {
  readonly status: number;
  readonly body: Uint8Array;
  readonly location?: string;
}

async function fetchOnce(
  url: URL,
  request: HttpRequest,
  isSameOrigin: boolean,
  signal: AbortSignal,
): Promise<Result<Answer, AppError>> {
  const headers = new Headers(isSameOrigin ? request.headers : {});
  headers.set("accept-encoding", "identity");
  if (request.bearer !== undefined && isSameOrigin) headers.set("authorization", `Bearer ${request.bearer.reveal()}`);
  if (request.post !== undefined) headers.set("content-type", "application/json");
  try {
    const response = await fetch(url, {
      ...(request.post === undefined ? {} : { method: "POST", body: request.post }),
      headers,
      redirect: "manual",
      keepalive: false,
      signal,
      tls:
        request.isPinned === true
          ? { rejectUnauthorized: false }
          : {
              rejectUnauthorized: true,
              ...(request.trust === undefined
                ? {}
                : { ca: request.isTrustAlone === true ? [request.trust] : [...rootCertificates, request.trust] }),
              ...(request.identity === undefined || !isSameOrigin
                ? {}
                : { cert: request.identity.certificate, key: request.identity.privateKey.reveal() }),
            },
    });
    const location = response.headers.get("location");
    if (response.status >= 300 && response.status < 400 && response.status !== 304 && location !== null) {
      await response.body?.cancel();
      return ok({ status: response.status, body: new Uint8Array(), location });
    }
    const body = await readCapped(response, request.maxBytes);
    if (body === undefined) {
      return err(appError("too-large", `${shown(url)} is larger than ${request.maxBytes} bytes`));
    }
    return ok({ status: response.status, body });
  } catch (thrown) {
    return err(fetchError(url, thrown));
  }
}

async function readCapped(response: Response, maxBytes: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** Without user, password and query: they may be secrets. */
const shown = (url: URL): string => `${url.protocol}//${url.host}${url.pathname}`;

/** What `fetch` threw, by Bun's and the system's codes. */
export function fetchError(url: URL, thrown: unknown): AppError {
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  const name = thrown instanceof Error ? thrown.name : "";
  const where = shown(url);
  if (name === "TimeoutError" || name === "AbortError") return appError("timeout", `${where} did not answer in time`);
  if (/NOT_YET_VALID/.test(code)) {
    return appError("tls-not-yet-valid", `the certificate of ${where} is not valid yet`, { hint: "check the clock" });
  }
  if (/HAS_EXPIRED/.test(code)) return appError("tls-expired", `the certificate of ${where} has expired`);
  if (/CERT|ISSUER|SIGNATURE|SELF_SIGNED|VERIFY|TLS|SSL|ALTNAME|HOSTNAME|CRL|PATH_LENGTH|INVALID_CA/.test(code)) {
    return appError("tls", `the certificate of ${where} is not trusted (${code})`);
  }
  if (/ENOTFOUND|EAI_AGAIN|DNS/i.test(code)) return appError("dns", `no address is known for ${url.hostname}`);
  // Bun says FailedToOpenSocket for a name that does not resolve and ConnectionRefused for most else.
  if (code === "FailedToOpenSocket") return appError("dns", `${url.hostname} can't be reached or has no address`);
  if (/EHOSTUNREACH|ENETUNREACH/.test(code)) {
    return appError("refused", `${where} can't be reached: it is off, or there is no way to it`);
  }
  if (/ConnectionRefused|ECONNREFUSED/.test(code)) return appError("refused", `${where} refused the connection`);
  if (/Timeout|ETIMEDOUT/.test(code)) return appError("timeout", `${where} did not answer in time`);
  return appError("protocol", `${where} could not be fetched${code === "" ? "" : ` (${code})`}`);
}
