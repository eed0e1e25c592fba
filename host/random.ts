import { randomBytes, randomUUID } from "node:crypto";

import type { Random } from "../kit/ports.ts";

export const realRandom: Random = {
  bytes: (count) => new Uint8Array(randomBytes(count)),
  uuid: () => randomUUID(),
};
