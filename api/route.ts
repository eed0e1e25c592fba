/** One table of routes: authorisation, bounds, 404, 405 and the OpenAPI page all come from it. */
import type { ZodType, z } from "zod";

import type { OperatorRole } from "../kit/operator-role.ts";
import type { Requester } from "../state/model.ts";
import type { Wire } from "./http-server.ts";
import type { ApiServices } from "./services.ts";

export interface RouteContext<B = unknown> {
  readonly services: ApiServices;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  readonly body: B;
  readonly requester: Requester;
  readonly role: OperatorRole;
  readonly wire: Wire;
  /** What the audit says of this request when it succeeds, instead of `done`; never a secret. */
  readonly note: (outcome: string) => void;
  /** Whether the caller would still be let in, for streams that live long. */
  readonly isStillAllowed: () => boolean;
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE" | "PUT";
  /** hono's pattern: `/v1/operations/:id`. */
  readonly path: string;
  readonly role: OperatorRole;
  readonly summary: string;
  /** For the reference; what they may be is checked by `run`. */
  readonly query?: readonly { readonly name: string; readonly description: string }[];
  /** Answers with newline-delimited JSON. */
  readonly isStream?: true;
  readonly body?: { readonly schema: ZodType; readonly limitBytes: number };
  /** It answers without the state database, however broken that is. */
  readonly needsNoState?: true;
  readonly run: (context: RouteContext) => Response | Promise<Response>;
}

export const SMALL_BODY_BYTES = 64 * 1024;
export const DOCUMENT_BODY_BYTES = 1024 * 1024;

/** A route with a body: `run` gets what its schema parsed. */
export function withBody<S extends ZodType>(
  route: Omit<Route, "body" | "run"> & {
    readonly schema: S;
    readonly limitBytes: number;
    readonly run: (context: RouteContext<z.output<S>>) => Response | Promise<Response>;
  },
): Route {
  const { schema, limitBytes, run, ...rest } = route;
  return {
    ...rest,
    body: { schema, limitBytes },
    run: (context) => run(context as RouteContext<z.output<S>>),
  };
}
