/**
 * Asks the cluster, with nothing but the join token, whether it takes this node under this name. What a token may ask
 * differs (docs/adr/0407-joining.md). Nothing on this machine is changed.
 */
import { getAt } from "../../config/path.ts";
import { type JoinToken, readJoinToken } from "../../config/token.ts";
import { TOKEN_REFUSED, TOKEN_REFUSED_HINT } from "../../k0s/refused-token.ts";
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import { parseJson } from "../../kit/json.ts";
import type { Host, HttpRequest } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import { Secret } from "../../kit/secret.ts";
import { issueReader, requestNode } from "../../pki/joining/driver.ts";
import { type Joining, judgeMembers, judgeNode } from "./judge.ts";

/** A first controller may still be booting; nothing was changed here, so that a retry is free. */
const LIMIT_MS = 30 * 60_000;
const POLL_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** The cluster approves what a kubelet asks for in a second or two. */
const SIGNING_POLLS = 15;
const API_SERVER_PORT = 6443;

/** Time may mend it: nobody is there, or nobody who can answer. */
interface Later {
  readonly kind: "later";
  readonly why: string;
}
/** It was asked, and can't be known this way: in words. */
interface Unknown {
  readonly kind: "unknown";
  readonly why: string;
}
type Outcome = Later | Unknown | { readonly kind: "told"; readonly verdict: Result<void, AppError> };

interface Answer {
  readonly status: number;
  readonly text: string;
}

type Ask = (path: string, more?: Partial<HttpRequest>) => Promise<Answer | Outcome>;

const told = (verdict: Result<void, AppError>): Outcome => ({ kind: "told", verdict });
const isOutcome = (value: Answer | Outcome): value is Outcome => "kind" in value;

/** `undefined` when the name is free, a warning where that can't be known. */
export async function askCluster(
  host: Host,
  { token: text, joining }: { readonly token: Secret; readonly joining: Joining },
  report: (message: string) => void,
): Promise<Result<string | undefined, AppError>> {
  const token = readJoinToken(text.reveal());
  if (token === undefined) return fail("secret-form", "the join token can't be read");
  const untilMs = host.clock.monotonicMs() + LIMIT_MS;
  for (;;) {
    const asked = await (token.role === "worker" ? askAsWorker : askAsController)(host, token, joining);
    if (asked.kind === "told") return asked.verdict.ok ? ok(undefined) : asked.verdict;
    if (asked.kind === "unknown") {
      return ok(`whether the cluster has a node '${joining.node}' already could not be asked: ${asked.why}`);
    }
    if (host.clock.monotonicMs() >= untilMs) {
      return fail("join-silent", `waited 30 min for the cluster to answer: ${asked.why}`, {
        hint: "nothing was changed: `cctl retry` once it is there, or give this node a token of another controller",
      });
    }
    report(`waiting for the cluster to answer: ${asked.why}`);
    await host.clock.sleep(POLL_MS);
  }
}

/** With a worker's token one may have a kubelet's certificate signed; with that, look at the Node of this name. */
async function askAsWorker(host: Host, token: JoinToken, joining: Joining): Promise<Outcome> {
  const ask = asker(host, token, token.server);
  const { request, privateKey } = await requestNode(joining.node);
  const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const asked = await ask(path, { bearer: token.bearer, post: JSON.stringify(signingRequest(request)) });
  if (isOutcome(asked)) return asked;
  const name = fieldOf(asked.text, "metadata", "name");
  if (asked.status !== 201 || name === undefined) return unexpected(asked, path);
  const certificate = await signed(host, () => ask(`${path}/${name}`, { bearer: token.bearer }));
  if (typeof certificate !== "string") return certificate;
  const identity = { certificate, privateKey: new Secret("a kubelet's key", privateKey) };
  return askForNode((where) => ask(where, { identity }), joining);
}

const signingRequest = (request: string): object => ({
  apiVersion: "certificates.k8s.io/v1",
  kind: "CertificateSigningRequest",
  metadata: { generateName: "corium-join-" },
  spec: {
    request: Buffer.from(request).toString("base64"),
    signerName: "kubernetes.io/kube-apiserver-client-kubelet",
    // Exactly these: what approves it looks.
    usages: ["digital signature", "client auth"],
    expirationSeconds: 3600,
  },
});

async function signed(host: Host, ask: () => Promise<Answer | Outcome>): Promise<string | Outcome> {
  for (let poll = 0; poll < SIGNING_POLLS; poll += 1) {
    const answer = await ask();
    if (isOutcome(answer) && answer.kind !== "later") return answer;
    const certificate = isOutcome(answer) ? undefined : fieldOf(answer.text, "status", "certificate");
    if (certificate !== undefined) return Buffer.from(certificate, "base64").toString("utf8");
    await host.clock.sleep(2_000);
  }
  return { kind: "unknown", why: "it does not sign what a kubelet asks for" };
}

/** A controller's token gives the cluster's CA, as k0s will take it a moment later; what it signs may read all. */
async function askAsController(host: Host, token: JoinToken, joining: Joining): Promise<Outcome> {
  const path = "/v1beta1/ca";
  const given = await asker(host, token, token.server)(path, { bearer: token.bearer });
  if (isOutcome(given)) return given;
  const [certificate, privateKey] = [fieldOf(given.text, "cert"), fieldOf(given.text, "key")].map((base64) =>
    Buffer.from(base64 ?? "", "base64").toString("utf8"),
  );
  if (given.status !== 200 || !certificate || !privateKey) return unexpected(given, path);
  const { clock, random } = host;
  const name = `corium:joining:${joining.node}`;
  const reader = await issueReader({ authority: { certificate, privateKey }, name, nowMs: clock.nowMs(), random });
  const identity = { certificate: reader.certificate, privateKey: new Secret("a reader's key", reader.privateKey) };
  const server = new URL(token.server);
  server.port = String(API_SERVER_PORT);
  const ask = asker(host, token, server.origin);
  const node = await askForNode((where) => ask(where, { identity }), joining);
  if (node.kind !== "told" || !node.verdict.ok) return node.kind === "later" ? { ...node, kind: "unknown" } : node;
  const members = "/apis/etcd.k0sproject.io/v1beta1/etcdmembers";
  const listed = await ask(members, { identity });
  if (isOutcome(listed)) return listed;
  // A k0s that does not keep them.
  if (listed.status === 404) return told(ok(undefined));
  const verdict = listed.status === 200 ? judgeMembers(listed.text, joining) : undefined;
  return verdict === undefined ? unexpected(listed, members) : told(verdict);
}

async function askForNode(ask: (path: string) => Promise<Answer | Outcome>, joining: Joining): Promise<Outcome> {
  const path = `/api/v1/nodes/${joining.node}`;
  const answer = await ask(path);
  if (isOutcome(answer)) return answer;
  if (answer.status === 404) return told(ok(undefined));
  const verdict = answer.status === 200 ? judgeNode(answer.text, joining) : undefined;
  return verdict === undefined ? unexpected(answer, path) : told(verdict);
}

/** Only who proves to be of the token's cluster is told its secret. */
const asker =
  (host: Host, token: JoinToken, server: string): Ask =>
  async (path, more = {}) => {
    const answer = await host.http({
      url: `${server}${path}`,
      timeoutMs: REQUEST_TIMEOUT_MS,
      maxBytes: 4 * 1024 * 1024,
      trust: token.certificateAuthority ?? "",
      isTrustAlone: true,
      ...more,
    });
    if (!answer.ok) {
      if (answer.error.code === "tls-expired")
        return told(fail("join-expired", answer.error.message, { hint: EXPIRED_HINT }));
      if (answer.error.code !== "tls") return { kind: "later", why: answer.error.message };
      return told(
        fail("join-untrusted", `who answers at ${server} can't prove to be of the cluster that the join token is for`, {
          cause: answer.error,
          hint: "make a new token on a controller of this cluster; check where cluster.endpoint leads",
        }),
      );
    }
    const { status, body } = answer.value;
    if (status === 401) return told(fail("join-refused", TOKEN_REFUSED, { hint: TOKEN_REFUSED_HINT }));
    if (status === 429 || status >= 500) return { kind: "later", why: `${server} answered with status ${status}` };
    return { status, text: new TextDecoder().decode(body) };
  };

const EXPIRED_HINT =
  "check this machine's clock; if it is right, restart k0s on that controller (`cctl restart NODE k0scontroller`), which renews its certificates, and `cctl retry` here";

const unexpected = ({ status }: Answer, path: string): Unknown => ({
  kind: "unknown",
  why: `${path} was answered with status ${status}`,
});

/** A text below these keys of an answer; undefined for anything else. */
function fieldOf(json: string, ...path: readonly string[]): string | undefined {
  const found = getAt(parseJson(json), path);
  return typeof found === "string" ? found : undefined;
}
