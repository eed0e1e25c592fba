import { afterAll, beforeAll, expect, test } from "bun:test";

import { Secret } from "../kit/secret.ts";
import { mintServer } from "../pki/driver.ts";
import type { KeyPair } from "../pki/model.ts";
import { fetchError, realHttp } from "./http.ts";
import { realRandom } from "./random.ts";

const DAY_MS = 86_400_000;
const seen: { path: string; authorization: string | null; test: string | null }[] = [];
const servers: Bun.Server<undefined>[] = [];
let trusted: KeyPair;
let https = "";
let other = "";
let http = "";

function serve(tls?: KeyPair): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    ...(tls === undefined ? {} : { tls: { cert: tls.certificate, key: tls.privateKey } }),
    async fetch(request) {
      const { pathname } = new URL(request.url);
      seen.push({
        path: pathname,
        authorization: request.headers.get("authorization"),
        test: request.headers.get("x-test"),
      });
      if (pathname === "/to-http") return Response.redirect(`${http}/plain`, 302);
      if (pathname === "/to-other") return Response.redirect(`${other}/there`, 307);
      if (pathname === "/loop") return Response.redirect(`${https}/loop`, 302);
      if (pathname === "/big") return new Response("x".repeat(100_000));
      if (pathname === "/slow") await Bun.sleep(5_000);
      if (pathname === "/missing") return new Response("no", { status: 404 });
      return new Response(`body of ${pathname}`);
    },
  });
  servers.push(server);
  return `${tls === undefined ? "http" : "https"}://localhost:${server.port}`;
}

beforeAll(async () => {
  trusted = await mintServer({ hostname: "localhost", nowMs: Date.now(), random: realRandom });
  https = serve(trusted);
  other = serve(trusted);
  http = serve();
});
afterAll(() => Promise.all(servers.map((server) => server.stop(true))));

const get = async (url: string, more: Partial<Parameters<typeof realHttp>[0]> = {}) => {
  const result = await realHttp({ url, timeoutMs: 2_000, maxBytes: 10_000, trust: trusted.certificate, ...more });
  return result.ok
    ? { status: result.value.status, text: new TextDecoder().decode(result.value.body), url: result.value.url }
    : { code: result.error.code, message: result.error.message };
};

test("any status is an answer", async () => {
  expect(await get(`${https}/a`)).toEqual({ status: 200, text: "body of /a", url: `${https}/a` });
  expect(await get(`${https}/missing`)).toMatchObject({ status: 404 });
});

test("an unknown certificate is refused; pinned content may come from anywhere", async () => {
  const { trust: _trust, ...bare } = { url: `${https}/a`, timeoutMs: 2_000, maxBytes: 10_000, trust: undefined };
  const refused = await realHttp(bare);
  expect(!refused.ok && refused.error.code).toBe("tls");
  expect((await realHttp({ ...bare, isPinned: true })).ok).toBe(true);
  // Trust is of one request: nothing was switched off or on for the next.
  const again = await realHttp(bare);
  expect(!again.ok && again.error.code).toBe("tls");
});

test("a certificate that is not valid yet is told apart: the clock may be wrong", async () => {
  const future = await mintServer({ hostname: "localhost", nowMs: Date.now() + 30 * DAY_MS, random: realRandom });
  expect(await get(`${serve(future)}/a`, { trust: future.certificate })).toMatchObject({ code: "tls-not-yet-valid" });
});

test("plain http is refused, also behind a redirect, unless the content is pinned", async () => {
  expect(await get(`${http}/a`)).toMatchObject({ code: "protocol" });
  expect(await get(`${https}/to-http`)).toMatchObject({ code: "redirect" });
  expect(await get(`${https}/to-http`, { isPinned: true })).toMatchObject({ status: 200, text: "body of /plain" });
  expect(await get(`${https}/loop`)).toMatchObject({ code: "redirect" });
});

test("the bearer and the headers are dropped when redirected to another host", async () => {
  seen.length = 0;
  const bearer = new Secret("token", "s3cret");
  expect(await get(`${https}/to-other`, { bearer, headers: { "x-test": "1" } })).toMatchObject({ status: 200 });
  expect(seen).toEqual([
    { path: "/to-other", authorization: "Bearer s3cret", test: "1" },
    { path: "/there", authorization: null, test: null },
  ]);
});

test("too large, too slow, refused, no such name", async () => {
  expect(await get(`${https}/big`)).toMatchObject({ code: "too-large" });
  expect(await get(`${https}/slow`, { timeoutMs: 300 })).toMatchObject({ code: "timeout" });
  expect(await get("https://localhost:1/a")).toMatchObject({ code: "refused" });
  expect(await get("https://no-such-name.invalid/a")).toMatchObject({ code: "dns" });
  expect(await get("not a url")).toMatchObject({ code: "protocol" });
});

test("a machine that is off was said to refuse the connection", () => {
  const url = new URL("https://192.0.2.77:6443/version");
  for (const code of ["EHOSTUNREACH", "ENETUNREACH"]) {
    const { message, ...error } = fetchError(url, Object.assign(new TypeError(code), { code }));
    // As passing as a refusal, and nobody is there.
    expect(error.code).toBe("refused");
    expect(message).toBe(`${url.href} can't be reached: it is off, or there is no way to it`);
  }
});

test("no error repeats a query, where secrets are put", async () => {
  const failed = await get("https://user:pw@localhost:1/a?token=s3cret");
  expect(JSON.stringify(failed)).not.toContain("s3cret");
  expect(JSON.stringify(failed)).not.toContain("pw@");
  expect(JSON.stringify(await get(`${https}/loop?token=s3cret`))).not.toContain("s3cret");
  expect(JSON.stringify(await get("s3cret"))).not.toContain("s3cret");
});

test("what is posted is not sent on to where the answer redirects", async () => {
  const from = seen.length;
  const request = {
    url: `${https}/to-other`,
    post: '{"a":1}',
    trust: trusted.certificate,
    isTrustAlone: true,
  } as const;
  const answer = await realHttp({ ...request, timeoutMs: 30_000, maxBytes: 1_000 });
  expect(answer.ok && answer.value.url).toBe(request.url);
  expect(seen.slice(from).map(({ path }) => path)).toEqual(["/to-other"]);
});
