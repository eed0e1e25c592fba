/** Each outcome of a secret's source, against a real https server on this machine: what is waited out, and what is not. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { realHttp } from "../host/http.ts";
import { realRandom } from "../host/random.ts";
import { formatError } from "../kit/app-error.ts";
import { mintServer } from "../pki/driver.ts";
import type { KeyPair } from "../pki/model.ts";
import { type FakeHost, fakeHost } from "../test/support/fake-host.ts";
import { resolveSecrets } from "./driver.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const DAY_MS = 86_400_000;
const SYNCED = "/run/systemd/timesync/synchronized";
const servers: Bun.Server<undefined>[] = [];
let own: KeyPair;
let untrusted: KeyPair;
let future: KeyPair;
let past: KeyPair;

type Answer = (request: Request, count: number) => Response | Promise<Response>;

function serve(answer: Answer, tls = own, port = 0): string {
  let count = 0;
  const fetchOne = (request: Request): Response | Promise<Response> => answer(request, ++count);
  const server = Bun.serve({
    port,
    hostname: "127.0.0.1",
    tls: { cert: tls.certificate, key: tls.privateKey },
    fetch: fetchOne,
  });
  servers.push(server);
  return `https://localhost:${server.port}/join-token`;
}

beforeAll(async () => {
  const mint = (nowMs: number) => mintServer({ hostname: "localhost", nowMs, random: realRandom });
  own = await mint(Date.now());
  untrusted = await mint(Date.now());
  future = await mint(Date.now() + 30 * DAY_MS);
  past = await mint(Date.now() - 60 * 365 * DAY_MS);
});
afterAll(() => Promise.all(servers.map((server) => server.stop(true))));

/** Waits take no time here; the wire is the real one, with a short patience. */
function machine(files: Readonly<Record<string, string>> = { [SYNCED]: "" }): FakeHost {
  const trust = [own, future, past].map(({ certificate }) => certificate).join("\n");
  return fakeHost({ files, http: (request) => realHttp({ ...request, trust, timeoutMs: 1_500 }) });
}

async function resolve(url: string, options: { waitFor?: string; host?: FakeHost; authFile?: string } = {}) {
  const host = options.host ?? machine();
  const messages: string[] = [];
  const source = {
    url,
    ...(options.waitFor === undefined ? {} : { waitFor: options.waitFor }),
    ...(options.authFile === undefined ? {} : { authFile: options.authFile }),
  };
  const fromMs = host.clock.monotonicMs();
  const got = await resolveSecrets(host, [{ path: "join.tokenFrom", source }], {
    report: (message) => void messages.push(message),
  });
  return {
    value: got.ok ? got.value.get("join.tokenFrom")?.reveal() : undefined,
    error: got.ok ? "" : formatError(got.error),
    messages,
    waitedMs: host.clock.monotonicMs() - fromMs,
  };
}

/** The first two times something else, then the token. */
const atLast =
  (first: Answer): Answer =>
  (request, count) =>
    count > 2 ? new Response("H4sIAAAA\n") : first(request, count);

describe("waited out, and said", () => {
  for (const status of [404, 408, 425, 429, 502, 503, 504]) {
    test(`status ${status}`, async () => {
      const url = serve(atLast(() => new Response("not yet", { status })));
      const { value, messages, waitedMs } = await resolve(url, { waitFor: "10m" });
      expect(value).toBe("H4sIAAAA");
      expect(messages[0]).toBe(`waiting up to 10m for join.tokenFrom: ${url} answered with status ${status}`);
      // 2 s, then 4 s.
      expect(waitedMs).toBe(6_000);
    });
  }

  test("blank content: the file is there before somebody fills it", async () => {
    const { value, messages } = await resolve(serve(atLast(() => new Response(" \n"))), { waitFor: "10m" });
    expect(value).toBe("H4sIAAAA");
    expect(messages[0]).toContain("is blank");
  });

  test("a connection refused: the first controller is still booting", async () => {
    const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const port = probe.port ?? 0;
    await probe.stop(true);
    const host = machine();
    let tries = 0;
    const counting = {
      ...host,
      http: (request: Parameters<typeof host.http>[0]) => {
        if (++tries === 3) serve(() => new Response("H4sIAAAA"), own, port);
        return host.http(request);
      },
    };
    const { value, messages } = await resolve(`https://localhost:${port}/t`, { waitFor: "10m", host: counting });
    expect(value).toBe("H4sIAAAA");
    expect(messages[0]).toContain("refused the connection");
  });

  test("a server that accepts and says nothing", async () => {
    const slow: Answer = async () => {
      await Bun.sleep(4_000);
      return new Response("late");
    };
    const { value, messages } = await resolve(serve(atLast(slow)), { waitFor: "10m" });
    expect(value).toBe("H4sIAAAA");
    expect(messages[0]).toContain("did not answer in time");
  });

  test("a name that does not resolve, until the time is over", async () => {
    const { value, error, messages, waitedMs } = await resolve("https://no-such-name.invalid/t", { waitFor: "1m" });
    expect(value).toBeUndefined();
    expect(messages[0]).toContain("no-such-name.invalid");
    expect(waitedMs).toBe(60_000);
    expect(error).toContain("no value for join.tokenFrom");
  });

  test("B062: a certificate that is not valid yet, while the clock is not synchronised", async () => {
    const host = machine({});
    const url = serve(() => new Response("H4sIAAAA"), future);
    const waiting = await resolve(url, { waitFor: "1m", host });
    expect(waiting.waitedMs).toBe(60_000);
    expect(waiting.messages[0]).toContain("is not valid yet");
    // Synchronised, it is what it says.
    expect((await resolve(url, { waitFor: "1m" })).waitedMs).toBe(0);
  });
});

describe("told at once, however long one would wait", () => {
  for (const status of [400, 401, 403, 405, 410, 418, 500]) {
    test(`status ${status}`, async () => {
      const { value, error, waitedMs } = await resolve(
        serve(() => new Response("no", { status })),
        { waitFor: "1h" },
      );
      expect({ value, waitedMs }).toEqual({ value: undefined, waitedMs: 0 });
      expect(error).toContain(`answered with status ${status}`);
    });
  }

  test("a certificate that nobody vouches for, or that has expired", async () => {
    for (const [pair, why] of [
      [untrusted, "is not trusted"],
      [past, "has expired"],
    ] as const) {
      const { value, error, waitedMs } = await resolve(
        serve(() => new Response("x"), pair),
        { waitFor: "1h" },
      );
      expect({ value, waitedMs }).toEqual({ value: undefined, waitedMs: 0 });
      expect(error).toContain(why);
    }
  });

  test("a certificate of another name", async () => {
    const url = serve(() => new Response("x")).replace("localhost", "127.0.0.1");
    const { value, error, waitedMs } = await resolve(url, { waitFor: "1h" });
    expect({ value, waitedMs }).toEqual({ value: undefined, waitedMs: 0 });
    expect(error).toContain("is not trusted");
  });

  test("a redirect to http", async () => {
    const { error, waitedMs } = await resolve(
      serve(() => Response.redirect("http://localhost:1/t", 302)),
      {
        waitFor: "1h",
      },
    );
    expect(waitedMs).toBe(0);
    expect(error).toContain("is not https");
  });
});

test("without waitFor one attempt is made", async () => {
  const url = serve(atLast(() => new Response("not yet", { status: 503 })));
  const { value, messages } = await resolve(url);
  expect({ value, messages }).toEqual({ value: undefined, messages: [] });
});

test("the bearer goes to the server that is named, and not to the one that it sends to", async () => {
  const seen: (string | null)[] = [];
  const there = serve((request) => {
    seen.push(request.headers.get("authorization"));
    return new Response("H4sIAAAA");
  });
  const here = serve((request) => {
    seen.push(request.headers.get("authorization"));
    return Response.redirect(there, 307);
  });
  const host = machine({ [SYNCED]: "", "/etc/corium/auth": "s3cret-bearer\n" });
  const { value, messages } = await resolve(here, { waitFor: "1m", host, authFile: "/etc/corium/auth" });
  expect(value).toBe("H4sIAAAA");
  expect(seen).toEqual(["Bearer s3cret-bearer", null]);
  expect(messages.join("\n")).not.toContain("s3cret");
});

test("four nodes that ask at once each get it when it comes, and each says that it waits", async () => {
  // All four have asked once by then; an hour of waiting is over in no time here.
  const url = serve((_, count) => (count > 12 ? new Response("H4sIAAAA") : new Response("", { status: 404 })));
  const joining = Array.from({ length: 4 }, () => resolve(url, { waitFor: "1h" }));
  for (const { value, messages } of await Promise.all(joining)) {
    expect(value).toBe("H4sIAAAA");
    expect(messages[0]).toStartWith("waiting up to 1h for join.tokenFrom: ");
  }
});
