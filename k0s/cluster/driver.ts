/** Who else is a controller of this cluster, asked on a controller. */
import { type AppError, fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import { ok, type Result } from "../../kit/result.ts";
import { K0S_BINARY } from "../paths.ts";
import { failureOf, waitFor, type Waiting } from "../service/driver.ts";
import type { ControlPlane } from "./model.ts";
import { type Member, ownMember, parseMembers } from "./members.ts";
import { parseLeader } from "./parse.ts";

/** A cold start of k0s, which is a program of 250 MB, from a slow disk, while etcd elects. cctl waits twice as long. */
const ASK_TIMEOUT_MS = 25_000;
/** A member that was restarted catches up with the others first. */
const MEMBERS_TIMEOUT_MS = 5 * 60_000;

export async function readMembers(host: Host): Promise<Result<readonly Member[], AppError>> {
  const result = await host.exec({ argv: [K0S_BINARY, "etcd", "member-list"], timeoutMs: ASK_TIMEOUT_MS });
  if (result.exitCode !== 0) return fail("etcd", `k0s etcd member-list: ${failureOf(result)}`);
  const members = parseMembers(result.stdout);
  return members === undefined ? fail("etcd", "k0s etcd member-list printed something else") : ok(members);
}

/** An error says why there is no answer, which may only mean that k0s is down. */
export async function readControlPlane(
  host: Host,
  own: { readonly hostname: string; readonly peerAddress?: string },
): Promise<Result<ControlPlane, AppError>> {
  const members = await readMembers(host);
  if (!members.ok) return members;
  const leases = await host.exec({
    argv: [K0S_BINARY, "kubectl", "get", "leases", "-n", "kube-node-lease", "-o", "json"],
    timeoutMs: ASK_TIMEOUT_MS,
  });
  const leader = leases.exitCode === 0 ? parseLeader(leases.stdout) : undefined;
  const self = ownMember(members.value, own)?.name;
  return ok({
    members: members.value.map(({ name }) => name),
    ...(self === undefined ? {} : { self }),
    ...(leader === undefined ? {} : { leader }),
  });
}

/** After a restart: etcd has all of the members that it had, and this node answers for it. */
export function waitForMembers(context: Waiting, wanted: readonly string[]): Promise<Result<void, AppError>> {
  return waitFor(context, {
    what: "etcd to have all of its members",
    timeoutMs: MEMBERS_TIMEOUT_MS,
    unit: "k0scontroller",
    probe: async () => {
      const members = await readMembers(context.host);
      if (!members.ok) return ok(members.error.message);
      const missing = wanted.filter((name) => !members.value.some((member) => member.name === name));
      return ok(missing.length === 0 ? undefined : `${missing.join(", ")} not there`);
    },
  });
}
