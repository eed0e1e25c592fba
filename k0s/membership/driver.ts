/** Asks the cluster, as this node's kubelet does, whether it still knows this node. One request; no program is started. */
import type { Host } from "../../kit/ports.ts";
import { Secret } from "../../kit/secret.ts";
import { K0S_DATA } from "../paths.ts";
import { type Membership, parseKubeletConfig, type Pem, pemPart, readMembership } from "./parse.ts";

const TIMEOUT_MS = 10_000;

/** Undefined where it can't be told: no kubelet here, nobody who answers, or one who says something else. */
export async function askMembership(host: Host, node: string): Promise<Membership | undefined> {
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
  const answer = await host.http({
    url: `${config.server}/api/v1/nodes/${node}`,
    timeoutMs: TIMEOUT_MS,
    maxBytes: 1024 * 1024,
    trust: authority,
    isTrustAlone: true,
    identity,
  });
  if (answer.ok) return readMembership(answer.value.status);
  return answer.error.code === "tls" ? "foreign" : undefined;
}
