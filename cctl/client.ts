/** Calls of the API, with the operator's certificate, to a node that is known by its fingerprint. */
import { X509Certificate } from "node:crypto";
import { type AppError, appError, fail } from "../kit/app-error.ts";
import { type Finding, formatFinding } from "../kit/finding.ts";
import { type Result, ok } from "../kit/result.ts";
import { version } from "../kit/version.ts";
import { fingerprintOfPem } from "../pki/fingerprint.ts";
import type { ErrorBody } from "../api/contract.ts";
import { formatAddress } from "./address.ts";
import { type HttpCall, openConnection } from "./connection.ts";
import type { Context } from "./context.ts";
import { jsonPrintable, printable } from "./printable.ts";
import { skewOf } from "./skew.ts";
import type { Target } from "./store.ts";

export const connectTimeoutMs = 10_000;
/** An apply answers only when k0s is back, or when the old files are. */
export const answerTimeoutMs = 1_800_000;

const warnBeforeMs = 14 * 86_400_000;

export interface ApiAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** Verbatim. */
  readonly body: string;
  readonly json: unknown;
}

export interface Client {
  /** As it is shown: the node's name when it is known, and its address. */
  readonly label: string;
  /** Fingerprint of the certificate that it comes with: by it the node knows who asked for what. */
  readonly own: string | undefined;
  readonly get: (path: string) => Promise<Result<ApiAnswer, AppError>>;
  readonly post: (
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Result<ApiAnswer, AppError>>;
  /** GET of NDJSON, line by line. */
  readonly stream: (path: string, onLine: (line: string) => void) => Promise<Result<ApiAnswer, AppError>>;
}

/** Resolves the address or name, reads and checks the certificate. Nothing is sent yet. */
export async function clientFor(context: Context, node: string): Promise<Result<Client, AppError>> {
  const target = await context.store.resolve(node);
  if (!target.ok) return target;
  const { pinned } = target.value;
  const where = formatAddress(target.value.address);
  if (pinned === undefined) {
    return fail("not-enrolled", `${where} was not enrolled from here`, {
      hint: `cctl enroll ${node}; if it was claimed with this CA already: cctl trust ${node}`,
    });
  }
  const credentials = await readCredentials(context);
  if (!credentials.ok) return credentials;
  const call = async (request: HttpCall): Promise<Result<ApiAnswer, AppError>> => {
    const opened = await openConnection({
      address: target.value.address,
      fingerprint: pinned.fingerprint,
      credentials: credentials.value,
      timeoutMs: connectTimeoutMs,
      signal: context.io.signal,
    });
    if (!opened.ok) return opened;
    const answer = await opened.value.call(request);
    return answer.ok ? judge(context, where, answer.value) : answer;
  };
  const get: Client["get"] = (path) => call({ method: "GET", path, idleTimeoutMs: 60_000 });
  return ok({
    label: labelOf(target.value),
    own: fingerprintOfPem(credentials.value.certificate),
    get,
    stream: (path, onLine) => call({ method: "GET", path, onLine, idleTimeoutMs: answerTimeoutMs }),
    async post(path, body, headers = {}) {
      // What a node of another time makes of a write is anybody's guess; reading its version harms nothing.
      const health = await get("/v1/health");
      if (!health.ok) return health;
      const skew = skewOf(version, health.value.headers.get("corium-version"));
      if (skew !== undefined) return { ok: false, error: skew };
      return call({ method: "POST", path, headers, body: JSON.stringify(body), idleTimeoutMs: answerTimeoutMs });
    },
  });
}

export function labelOf({ address, pinned }: Target): string {
  return pinned?.name === undefined ? formatAddress(address) : `${pinned.name} (${formatAddress(address)})`;
}

type Credentials = NonNullable<Parameters<typeof openConnection>[0]["credentials"]>;

async function readCredentials(context: Context): Promise<Result<Credentials, AppError>> {
  const { store } = context;
  const certificate = await store.readText("certificate");
  if (!certificate.ok) return certificate;
  const key = await store.readKey("key");
  if (!key.ok) return key;
  if (certificate.value === undefined || key.value === undefined) {
    return fail("not-authorised", `there is no client certificate in ${store.dir}`, {
      hint: "cctl pki init makes a CA and one; cctl pki issue makes one from the CA that is there",
    });
  }
  const checked = checkLifetime(context, certificate.value);
  return checked.ok ? ok({ certificate: certificate.value, key: key.value }) : checked;
}

/** A node that refuses an expired certificate looks like a dead node; so it is said here, before. */
function checkLifetime(context: Context, pem: string): Result<void, AppError> {
  let endsAtMs: number;
  try {
    endsAtMs = new X509Certificate(pem).validToDate.getTime();
  } catch {
    return fail("store", `${context.store.path("certificate")} is no certificate`);
  }
  const leftMs = endsAtMs - context.clock.nowMs();
  const day = new Date(endsAtMs).toISOString().slice(0, 10);
  const hint = "cctl pki issue makes a new one, with the CA key; nodes need not be told";
  if (leftMs <= 0) return fail("not-authorised", `your client certificate expired on ${day}`, { hint });
  if (leftMs < warnBeforeMs)
    context.io.err(`cctl: warning: your client certificate expires on ${day}\n  hint: ${hint}\n`);
  return ok(undefined);
}

function judge(
  context: Context,
  where: string,
  answer: { status: number; headers: ReadonlyMap<string, string>; body: string },
): Result<ApiAnswer, AppError> {
  let json: unknown;
  try {
    json = answer.body === "" ? undefined : JSON.parse(answer.body);
  } catch {
    if (/json/.test(answer.headers.get("content-type") ?? "")) {
      return fail("protocol", `${where} answered something that is no JSON`);
    }
  }
  if (answer.status < 300) return ok({ ...answer, json });
  if (context.output === "json" && answer.body !== "") context.io.out(`${jsonPrintable(answer.body.trimEnd())}\n`);
  return { ok: false, error: refusal(where, answer.status, json) };
}

/** The node's own sentence, everything it refuses, and what to do. */
export function refusal(where: string, status: number, json: unknown): AppError {
  const body: Partial<ErrorBody> = typeof json === "object" && json !== null ? json : {};
  const code = status === 401 || status === 403 ? "not-authorised" : (body.reason ?? `http-${status}`);
  const problems = (body.problems ?? []).map((finding: Finding) => formatFinding(finding));
  const fields = (body.refused?.fields ?? []).map(
    ({ path, old, new: wanted, class: kind }) => `${printable(path)}: ${shown(old)} → ${shown(wanted)} (${kind})`,
  );
  const removed = (body.refused?.removed ?? []).map(
    ({ path, hint }) => `${printable(path)}: is gone\n  hint: ${printable(hint)}`,
  );
  const differing = (body.differences ?? []).map(({ message, diff = "" }) =>
    [message, ...diff.split("\n").filter((line) => line !== "")].map((line) => printable(line)).join("\n    "),
  );
  const details = [...problems, ...fields, ...removed, ...differing].flatMap((text) => text.split("\n"));
  if (body.operation !== undefined) details.push(`operation: ${printable(body.operation)}`);
  return appError(
    code,
    `${where} answers ${status}: ${indented(body.error ?? "no reason given")}`,
    details.length === 0 ? {} : { details },
  );
}

/** A node may say several lines (the end of a journal); they stay below its own words. */
function indented(text: string): string {
  return printable(text, "line-feeds").replaceAll("\n", "\n  ");
}

function shown(value: unknown): string {
  return value === undefined ? "absent" : JSON.stringify(value);
}
