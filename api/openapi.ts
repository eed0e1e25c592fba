/** The OpenAPI page, made from the table of routes: what it says is what is enforced. */
import { z } from "zod";

import type { Route } from "./route.ts";
import { DOCUMENT_BODY_BYTES } from "./route.ts";
import { ENROLL_PATH, enrollSchema } from "./routes/enroll.ts";

const finding = {
  type: "object",
  required: ["severity", "code", "path", "message"],
  properties: {
    severity: { enum: ["error", "warning"] },
    code: { type: "string" },
    path: { type: "string" },
    message: { type: "string" },
    details: { type: "array", items: { type: "string" } },
    hint: { type: "string" },
    line: { type: "integer" },
    column: { type: "integer" },
  },
};

const errorSchema = {
  type: "object",
  required: ["error"],
  properties: {
    error: { type: "string", description: "a sentence that says what to do" },
    reason: { type: "string", description: "for programs" },
    problems: { type: "array", items: finding },
    refused: { type: "object", description: "with reason immutable: everything refused, at once" },
    operation: { type: "string", description: "with reason busy: the operation that runs" },
  },
};

const content = (schema: object, type = "application/json"): object => ({ content: { [type]: { schema } } });
const refusal = { description: "a refusal", ...content({ $ref: "#/components/schemas/Error" }) };

export function openApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operationOf(route);
  }
  paths[ENROLL_PATH] = {
    post: {
      summary: "claim an unowned node; the only route that needs no certificate, and only until the node is claimed",
      security: [],
      requestBody: bodyOf(enrollSchema, DOCUMENT_BODY_BYTES),
      responses: { "200": { description: "claimed", ...content({ type: "object" }) }, default: refusal },
    },
  };
  return {
    openapi: "3.1.0",
    info: {
      title: "Corium",
      version,
      description:
        "TLS 1.3 on port 7443 with client certificates of the operator CA, or the root-only socket /run/corium/api.sock. Every answer carries Corium-Version.",
    },
    security: [{ operator: [] }],
    paths,
    components: {
      securitySchemes: {
        operator: {
          type: "mutualTLS",
          description: "role in Subject O: corium:readonly, corium:operator, corium:admin",
        },
      },
      schemas: { Error: errorSchema },
    },
  };
}

function operationOf(route: Route): object {
  const parameters = [
    ...[...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
      name,
      in: "path",
      required: true,
      schema: { type: "string" },
    })),
    ...(route.query ?? []).map(({ name, description }) => ({
      name,
      in: "query",
      description,
      schema: { type: "string" },
    })),
  ];
  const type = route.isStream === true ? "application/x-ndjson" : "application/json";
  return {
    summary: route.summary,
    "x-corium-role": route.role,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: bodyOf(route.body.schema, route.body.limitBytes) }),
    responses: { "2XX": { description: "done", ...content({}, type) }, default: refusal },
  };
}

function bodyOf(schema: z.ZodType, limitBytes: number): object {
  const { $schema: _dialect, ...body } = z.toJSONSchema(schema, { io: "input" }) as Record<string, unknown>;
  return { required: true, description: `at most ${limitBytes} bytes`, ...content(body) };
}
