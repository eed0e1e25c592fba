/** The real API and a real (in-memory) state on a fake host: what is called is what a node would answer. */
import type { Caller } from "../../api/caller.ts";
import { localCaller } from "../../api/caller.ts";
import { caChallenge } from "../../api/ca-challenge.ts";
import { createApi } from "../../api/app.ts";
import type { Enrolment } from "../../api/enrolment.ts";
import { openEnrolment } from "../../api/enrolment.ts";
import type { ApiServices, OwnDocument } from "../../api/services.ts";
import type { ServiceOutcome, ServiceRequest } from "../../apply/service/model.ts";
import { parseDocument } from "../../config/load.ts";
import { nodeVolumes } from "../../supervisor/volumes.ts";
import { nodePaths } from "../../kit/paths.ts";
import type { OperatorRole } from "../../kit/operator-role.ts";
import { err, ok } from "../../kit/result.ts";
import type { State } from "../../state/open.ts";
import { memoryState } from "../../state/open.ts";
import type { FakeHost, FakeHostOptions } from "./fake-host.ts";
import { fakeHost } from "./fake-host.ts";

export interface FakeApi {
  readonly state: State;
  readonly fake: FakeHost;
  readonly enrolment: Enrolment;
  readonly services: ApiServices;
  readonly pokes: { count: number };
  /** What the node's own sources hold. */
  own: OwnDocument;
  bootstrap: "idle" | "waiting" | "running" | "failed" | "done";
  applied: ServiceRequest[];
  readonly resumed: (readonly [operation: string, word: string])[];
  outcome: ServiceOutcome;
  readonly call: (method: string, path: string, more?: CallOptions) => Promise<FakeAnswer>;
}

export interface CallOptions {
  readonly as?: Caller;
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface FakeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
}

export const operator = (role: OperatorRole, name = "alice"): Caller => ({
  kind: "operator",
  role,
  requester: { kind: "operator", name, role, fingerprint: `SHA256:${name}`, address: "192.0.2.1" },
});

export const fakeCode = (fake: FakeHost): string =>
  (JSON.parse(fake.text("/run/corium/enrolment.json") ?? "{}") as { readonly code?: string }).code ?? "";

export async function fakeApi(options: FakeHostOptions & Partial<ApiServices> = {}): Promise<FakeApi> {
  const fake = fakeHost(options);
  const paths = nodePaths();
  const state = options.state ?? memoryState();
  const opened = await openEnrolment(fake, paths.enrolment, "SHA256:server");
  if (!opened.ok) throw new Error(opened.error.message);
  const pokes = { count: 0 };
  const services: ApiServices = {
    host: fake,
    paths,
    version: "1.2.3",
    state,
    enrolment: opened.value,
    config: {
      parse: (text, nowMs = fake.clock.nowMs()) => parseDocument(text, { nowMs }),
      findOwn: async () => api.own,
      redact: () => "(redacted)",
    },
    bootstrap: {
      state: async () => api.bootstrap,
      settled: async () => api.bootstrap,
      poke: async () => {
        pokes.count += 1;
        return ok(undefined);
      },
    },
    status: {
      health: async () => ({ status: "ok", version: "1.2.3" }),
      node: () => Promise.reject(new Error("not in this test")),
      disks: async () => err({ code: "lsblk", message: "lsblk can't be run" }),
      config: async () => ({ state: "unconfigured", reasons: [] }),
    },
    apply: {
      apply: async (request) => {
        api.applied.push(request);
        return api.outcome;
      },
      greet: async () => undefined,
      resume: async (operation, { word }) => {
        api.resumed.push([operation, word]);
        return api.outcome;
      },
    },
    caChallenge: caChallenge(fake),
    volumes: nodeVolumes(fake, state),
    disks: {
      plan: async () => err({ code: "no-baseline", message: "this node has no arrays" }),
      begin: () => ({ kind: "busy", operation: "none", message: "operation none (apply) is running; wait for it" }),
    },
    ...options,
  };
  const app = createApi(services);
  const api: FakeApi = {
    state,
    fake,
    enrolment: opened.value,
    services,
    pokes,
    own: { kind: "none" },
    bootstrap: "idle",
    applied: [],
    resumed: [],
    outcome: { kind: "refused", status: 409, body: { error: "no", reason: "immutable" } },
    async call(method, path, more = {}) {
      const caller = more.as ?? localCaller("local");
      const text = more.text ?? (more.json === undefined ? "" : JSON.stringify(more.json));
      const response = await app.handle(
        new Request(`http://node${path}`, {
          method,
          headers: { ...(more.json === undefined ? {} : { "content-type": "application/json" }), ...more.headers },
        }),
        {
          caller,
          recheck: () => caller,
          address: "192.0.2.1",
          connection: 1,
          signal: more.signal ?? new AbortController().signal,
          readBody: async (limit) => (text.length > limit ? err("too-large") : ok(text)),
        },
      );
      const body = await response.text();
      const isJson = response.headers.get("content-type") === "application/json";
      return {
        status: response.status,
        headers: response.headers,
        text: body,
        json: isJson ? (JSON.parse(body) as Record<string, unknown>) : {},
      };
    },
  };
  return api;
}
