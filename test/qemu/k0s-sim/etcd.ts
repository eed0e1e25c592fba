/** `k0s etcd member-list|leave`. */
import { loadConfig } from "./config.ts";
import { parseFlags } from "./flags.ts";
import { memberName, readMembers, tellMembers, writeMembers } from "./members.ts";
import { readRuntime } from "./runtime.ts";
import { rooted, SimError } from "./stand-in.ts";
import { askSocket } from "./status.ts";

export async function etcdCommand(argv: readonly string[]): Promise<string> {
  const [verb, ...rest] = argv;
  const runtime = readRuntime();
  const dataDir = rooted(runtime.dataDir);
  await askSocket("/run/k0s/status.sock", "live");
  const members = readMembers(dataDir);
  if (verb === "member-list") return `${JSON.stringify({ members })}\n`;
  if (verb !== "leave") throw new SimError(`unknown command "${verb ?? ""}" for "k0s etcd"`);
  const parsed = parseFlags([{ name: "peer-address", type: "string", help: "etcd peer address to remove" }], rest);
  const address = parsed.text("peer-address");
  const own = memberName(await loadConfig({ path: runtime.configPath }));
  const leaving = Object.entries(members).find(([name, url]) =>
    address === "" ? name === own : url === `https://${address}:2380`,
  );
  if (leaving === undefined) throw new SimError(`failed to find member with peer address ${address}`);
  const staying = Object.fromEntries(Object.entries(members).filter(([name]) => name !== leaving[0]));
  writeMembers(dataDir, staying);
  await tellMembers(dataDir, staying);
  return "";
}
