/** What the API server says about a name that a joining node wants to have: is somebody else called so? Pure. */
import { z } from "zod";
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import { parseJson } from "../../kit/json.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import { isSameAddress } from "../addresses.ts";

export interface Joining {
  /** As Kubernetes would call it. */
  readonly node: string;
  readonly machineId: string;
  /** Of the firmware; the same for a machine that was installed anew, but not unique in all the world. */
  readonly systemUuid?: string;
  /** Of etcd, where it is known. */
  readonly peerAddress?: string;
}

const nodeObject = z.looseObject({
  status: z
    .looseObject({
      nodeInfo: z.looseObject({ machineID: z.string().default(""), systemUUID: z.string().default("") }).optional(),
      addresses: z.array(z.looseObject({ type: z.string(), address: z.string() })).default([]),
      conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).default([]),
    })
    .optional(),
});

/** `GET /api/v1/nodes/NAME`, of a node that there is. Undefined: the text is no Node. */
export function judgeNode(text: string, own: Joining): Result<void, AppError> | undefined {
  const parsed = nodeObject.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { nodeInfo, addresses = [], conditions = [] } = parsed.data.status ?? {};
  // No kubelet has ever reported: nobody is called so yet.
  if (nodeInfo === undefined || nodeInfo.machineID === "" || nodeInfo.machineID === own.machineId) return ok(undefined);
  const isReady = conditions.some(({ type, status }) => type === "Ready" && status === "True");
  const isSameBoard = own.systemUuid?.toLowerCase() === nodeInfo.systemUUID.toLowerCase();
  // Installed anew. Cheap boards share one UUID: a machine that is alive is another one all the same.
  if (isSameBoard && !isReady) return ok(undefined);
  const where = addresses.find(({ type }) => type === "InternalIP")?.address;
  const other = [
    `machine ${nodeInfo.machineID}`,
    ...(where === undefined ? [] : [where]),
    isReady ? "ready" : "not ready",
  ];
  return fail("name-taken", `the cluster has a node '${own.node}' already: ${other.join(", ")}`, {
    details: [`this is machine ${own.machineId}`],
    hint: `give this node another node.name; if that machine is gone for good: \`k0s kubectl delete node ${own.node}\` on a controller, and \`cctl retry\``,
  });
}

const memberList = z.looseObject({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string() }),
      status: z
        .looseObject({
          peerAddress: z.string().default(""),
          conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).default([]),
        })
        .optional(),
    }),
  ),
});

/** `GET /apis/etcd.k0sproject.io/v1beta1/etcdmembers`. Undefined: the text is no such list. */
export function judgeMembers(text: string, own: Joining): Result<void, AppError> | undefined {
  const parsed = memberList.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  for (const { metadata, status } of parsed.data.items) {
    const { peerAddress = "", conditions = [] } = status ?? {};
    if (conditions.some((each) => each.type === "Joined" && each.status === "False")) continue;
    const isOwnAddress =
      own.peerAddress !== undefined && peerAddress !== "" && isSameAddress(peerAddress, own.peerAddress);
    if (metadata.name !== own.node && !isOwnAddress) continue;
    // Without an address etcd can't be told whom to let go.
    const outOfEtcd = peerAddress === "" ? "" : `\`k0s etcd leave --peer-address ${peerAddress}\` and `;
    const leave = `${outOfEtcd}\`k0s kubectl delete etcdmember ${metadata.name}\` on a controller, and \`cctl retry\``;
    return fail(
      "member-taken",
      `etcd has a member '${metadata.name}' at ${peerAddress || "an unknown address"} already`,
      {
        hint: isOwnAddress
          ? `it was left behind by an earlier life of this machine: ${leave}`
          : `give this node another node.name; if that member is gone for good: ${leave}`,
      },
    );
  }
  return ok(undefined);
}
