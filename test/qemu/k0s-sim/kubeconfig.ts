/** `k0s kubeconfig admin|create`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { kubeConfigYaml } from "./api-client.ts";
import { issue, readPair } from "./certificates.ts";
import { loadConfig } from "./config.ts";
import { CONFIG } from "./flag-sets.ts";
import { parseFlags } from "./flags.ts";
import { adminConfig, apiUrl, readRuntime } from "./runtime.ts";
import { rooted, SimError } from "./stand-in.ts";

export async function kubeconfigCommand(argv: readonly string[]): Promise<string> {
  const [verb, ...rest] = argv;
  const runtime = readRuntime();
  if (verb === "admin") {
    const config = await loadConfig({ path: runtime.configPath });
    const admin = adminConfig(runtime.dataDir);
    const text = readFileSync(join(rooted(runtime.dataDir), "pki/admin.conf"), "utf8");
    return text.replace(admin.server, apiUrl(config));
  }
  if (verb !== "create") throw new SimError(`unknown command "${verb ?? ""}" for "k0s kubeconfig"`);
  const parsed = parseFlags(
    [
      { name: "groups", type: "list", help: "groups of the user" },
      { name: "certificate-expires-after", type: "duration", help: "how long it is valid", fallback: "8760h" },
      { name: "context-name", type: "string", help: "name of the context", fallback: "k0s" },
      CONFIG,
    ],
    rest,
  );
  const user = parsed.positional[0];
  if (user === undefined) throw new SimError("accepts 1 arg(s), received 0");
  const config = await loadConfig({ path: runtime.configPath });
  const ca = readPair(join(rooted(runtime.dataDir), "pki/ca"));
  if (ca === undefined)
    throw new SimError("failed to read the cluster's CA, is the control plane initialized on this node?");
  const group = parsed.list("groups")[0];
  const pair = await issue(ca, { commonName: user, ...(group === undefined ? {} : { organization: group }) });
  return kubeConfigYaml({ server: apiUrl(config), ca: ca.cert, user, ...pair }, parsed.text("context-name"));
}
