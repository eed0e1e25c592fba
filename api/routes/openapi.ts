import { openApi } from "../openapi.ts";
import { json } from "../problem.ts";
import type { Route } from "../route.ts";

/** `all`: asked for when called, because this route is one of them. */
export const openApiRoute = (all: () => readonly Route[]): Route => ({
  method: "GET",
  path: "/v1/openapi.json",
  role: "readonly",
  summary: "this page",
  needsNoState: true,
  run: ({ services }) => json(200, openApi(all(), services.version)),
});
