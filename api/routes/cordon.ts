/** Taking a node of the cluster out of use for a while, through one of its controllers. */
import { z } from "zod";
import { readNodes, setCordon } from "../../k0s/nodes/driver.ts";
import type { ClusterNode } from "../../k0s/nodes/model.ts";
import { err, ok, type Result } from "../../kit/result.ts";
import { nameOf } from "../../state/requester.ts";
import { beginDrain } from "../../supervisor/drain.ts";
import type { CordonAnswer, DrainAnswer } from "../contract.ts";
import { onController } from "../controller.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";
import { isTrue } from "./operations.ts";

const nodeSchema = z.strictObject({
  node: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/, "a node's name is letters, digits, dots and dashes")
    .optional()
    .meta({ description: "as Kubernetes calls it; default the controller itself, where it has a kubelet" }),
});
type Context = RouteContext<z.output<typeof nodeSchema>>;

export const CORDON_ROUTES: readonly Route[] = [
  withBody({
    method: "POST",
    path: "/v1/lifecycle/cordon",
    role: "operator",
    summary: "on a controller: let no new pods come to a node, or again",
    query: [{ name: "undo", description: "true: let them come again; only to a node that was cordoned so" }],
    schema: nodeSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: cordon,
  }),
  withBody({
    method: "POST",
    path: "/v1/lifecycle/drain",
    role: "operator",
    summary: "on a controller: cordon a node and have its pods go elsewhere; never forced",
    schema: nodeSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: drain,
  }),
];

interface Target {
  readonly node: ClusterNode;
  readonly all: readonly ClusterNode[];
}

async function targetOf({ services, body }: Context): Promise<Result<Target, Response>> {
  const controller = onController(services);
  if (!controller.ok) return controller;
  const { document, baseline } = controller.value;
  if (body.node === undefined && document.role === "controller") {
    return err(
      problem(409, "this controller has no kubelet, so it takes no pods; name the node that is meant", {
        reason: "no-kubelet",
      }),
    );
  }
  const name = body.node ?? baseline.hostname.toLowerCase();
  const all = await readNodes(services.host);
  if (!all.ok) return err(problem(503, sentence(all.error), { reason: all.error.code }));
  const node = all.value.find((one) => one.name === name);
  if (node !== undefined) return ok({ node, all: all.value });
  const names = all.value.map((one) => one.name).join(", ");
  return err(problem(404, `the cluster has no node ${name}; it has ${names}`, { reason: "unknown-node" }));
}

async function cordon(context: Context): Promise<Response> {
  const target = await targetOf(context);
  if (!target.ok) return target.error;
  const { node } = target.value;
  const { services, requester, query, note } = context;
  const isUndo = isTrue(query.get("undo"));
  if (node.isCordoned !== isUndo) {
    return json(200, { node: node.name, cordoned: node.isCordoned, changed: false } satisfies CordonAnswer);
  }
  if (isUndo && !node.isOurs) {
    return problem(
      409,
      `${node.name} was cordoned by somebody else, who may have a reason; they undo it with \`kubectl uncordon ${node.name}\``,
      { reason: "not-ours" },
    );
  }
  const done = await setCordon(services.host, node.name, isUndo ? undefined : nameOf(requester));
  if (!done.ok) return problem(503, sentence(done.error), { reason: done.error.code });
  note(`${node.name} ${isUndo ? "uncordoned" : "cordoned"}`);
  return json(200, { node: node.name, cordoned: !isUndo, changed: true } satisfies CordonAnswer);
}

async function drain(context: Context): Promise<Response> {
  const target = await targetOf(context);
  if (!target.ok) return target.error;
  const { node, all } = target.value;
  const { services, requester, note } = context;
  if (!all.some((one) => one.name !== node.name && one.isReady && !one.isCordoned)) {
    return problem(409, `no other node is ready to take the pods of ${node.name}, so a drain could never end`, {
      reason: "nowhere-to-go",
    });
  }
  const begun = beginDrain(services, node, requester);
  if (begun.kind === "busy") {
    return problem(409, begun.message, {
      reason: "busy",
      operation: begun.operation,
    });
  }
  // The database is gone, or closed under a daemon that ends: the next one closes the operation.
  begun.ended.catch((thrown: unknown) => void process.stderr.write(`drain: ${String(thrown)}\n`));
  note(`${node.name} drained by operation ${begun.operation}`);
  return json(202, { draining: node.name, operation: begun.operation } satisfies DrainAnswer);
}
