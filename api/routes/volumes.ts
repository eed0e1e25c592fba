import { z } from "zod";
import type { AppError } from "../../kit/app-error.ts";
import type { KnownVolume } from "../../luks/model.ts";
import { Secret } from "../../kit/secret.ts";
import type { RecoveryAnswer, UnlockAnswer } from "../contract.ts";
import { oneAtATime } from "../one-at-a-time.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";

const recoverySchema = z.strictObject({
  replace: z.boolean().optional().meta({ description: "older recovery keys stop working" }),
});
const unlockSchema = z.strictObject({
  key: z.string().min(1).meta({ description: "a passphrase, or a recovery key" }),
});

export const VOLUME_ROUTES: readonly Route[] = [
  withBody({
    method: "POST",
    path: "/v1/luks/:name/recovery",
    role: "admin",
    summary: "make a recovery key of an encrypted volume: the answer is the only place where it ever stands",
    schema: recoverySchema,
    limitBytes: SMALL_BODY_BYTES,
    run: recovery,
  }),
  withBody({
    method: "POST",
    path: "/v1/luks/:name/unlock",
    role: "operator",
    summary: "open an encrypted volume that stayed locked, and start what waited for it",
    schema: unlockSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: unlock,
  }),
];

function find({ services, params }: RouteContext): KnownVolume | Response {
  const name = params["name"] ?? "";
  const volumes = services.volumes.known();
  const known = volumes.find((volume) => volume.name === name);
  if (known !== undefined) return known;
  const there = volumes.length === 0 ? "it has none" : `it has ${volumes.map((volume) => volume.name).join(", ")}`;
  return problem(404, `this node has no encrypted volume '${name}'; ${there}`, { reason: "unknown-volume" });
}

/** Something about the machine has to change first, or the request has to. */
const CONFLICTS = ["missing", "locked", "has-recovery-key", "already-open", "wrong-key"];

const refused = (error: AppError): Response =>
  problem(CONFLICTS.includes(error.code) ? 409 : 503, sentence(error), { reason: error.code });

async function recovery(context: RouteContext<z.output<typeof recoverySchema>>): Promise<Response> {
  const volume = find(context);
  if (volume instanceof Response) return volume;
  const { services, body } = context;
  const minted = await oneAtATime(services, () => services.volumes.recovery(volume, body.replace === true));
  if (!minted.ok) return refused(minted.error);
  const answer: RecoveryAnswer = { volume: volume.name, recoveryKey: minted.value.reveal() };
  return json(200, answer);
}

async function unlock(context: RouteContext<z.output<typeof unlockSchema>>): Promise<Response> {
  const volume = find(context);
  if (volume instanceof Response) return volume;
  const { services, body } = context;
  const key = new Secret(`luks[${volume.name}].key`, body.key.trim());
  const opened = await oneAtATime(services, () => services.volumes.unlock(volume, key));
  if (!opened.ok) return refused(opened.error);
  const { isBoundAnew, problems } = opened.value;
  const answer: UnlockAnswer = { volume: volume.name, boundAnew: isBoundAnew, problems: problems.map(sentence) };
  return json(200, answer);
}
