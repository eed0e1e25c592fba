/** Asks the cluster, as this node's kubelet does, for this node's own Node. One request; no program is started. */
import type { Host, Http } from "../../kit/ports.ts";
import { Secret } from "../../kit/secret.ts";
import { K0S_DATA } from "../paths.ts";
import {
  type Membership,
  parseKubeletConfig,
  type Pem,
  pemPart,
  type Readiness,
  readMembership,
  readReadiness,
} from "./parse.ts";

const MEMBERSHIP_TIMEOUT_MS = 10_000;
/** Somebody waits for the answer. */
const READINESS_TIMEOUT_MS = 4_000;

type Answer = Awaited<ReturnType<Http>>;

/** Undefined where it can't be told: no kubelet here, nobody who answers, or one who says something else. */
export async function askMembership(host: Host, node: string): Promise<Membership | undefined> {
  const answer = await askForNode(host, node, MEMBERSHIP_TIMEOUT_MS);
  if (answer === undefined) return undefined;
  if (answer.ok) return readMembership(answer.value.status);
  return answer.error.code === "tls" ? "foreign" : undefined;
}

/** Undefined: there is no kubelet here that has joined. */
export async function askReadiness(host: Host, node: string): Promise<Readiness | undefined> {
  const answer = await askForNode(host, node, READINESS_TIMEOUT_MS);
  if (answer === undefined) return undefined;
  if (!answer.ok) return { why: answer.error.message };
  return readReadiness(answer.value.status, new TextDecoder().decode(answer.value.body));
}

async function askForNode(host: Host, node: string, timeoutMs: number): Promise<Answer | undefined> {
  const text = await host.files.readText(`${K0S_DATA}/kubelet.conf`, { maxBytes: 65_536 });
  const config = text.ok ? parseKubeletConfig(text.value) : undefined;
  if (config === undefined) return undefined;
  const read = async (pem: Pem): Promise<string> => {
    if ("text" in pem) return pem.text;
    const found = await host.files.readText(pem.path, { maxBytes: 65_536 });
    return found.ok ? found.value : "";
  };
  const [authority, certificate, key] = await Promise.all(
    [config.authority, config.certificate, config.key].map((pem) => read(pem)),
  );
  const identity = {
    certificate: pemPart(certificate ?? "", "CERTIFICATE"),
    privateKey: new Secret("the kubelet's key", pemPart(key ?? "", "KEY")),
  };
  if (identity.certificate === "" || authority === undefined || authority === "") return undefined;
  return host.http({
    url: `${config.server}/api/v1/nodes/${node}`,
    timeoutMs,
    maxBytes: 1024 * 1024,
    trust: authority,
    isTrustAlone: true,
    identity,
  });
}
