import { describe, expect, test } from "bun:test";
import { appError } from "../kit/app-error.ts";
import { err, ok } from "../kit/result.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { resolveSecrets } from "./driver.ts";
import { backoffMs, isBehindOverlay, judgeHttpError, judgeStatus, judgeText, shownUrl } from "./secrets.ts";

describe("judging an attempt", () => {
  test("what time can mend is waited out, the rest is not", () => {
    for (const status of [404, 408, 425, 429, 502, 503, 504]) expect(judgeStatus(status, "", "u").kind).toBe("later");
    for (const status of [400, 401, 403, 405, 410, 500]) expect(judgeStatus(status, "", "u").kind).toBe("never");
    for (const code of ["dns", "refused", "timeout"])
      expect(judgeHttpError(appError(code, "x"), "u", true).kind).toBe("later");
    for (const code of ["tls", "too-large", "redirect"])
      expect(judgeHttpError(appError(code, "x"), "u", false).kind).toBe("never");
    expect(judgeText(" \n", "u").kind).toBe("later");
    expect(judgeText("token\n", "u")).toEqual({ kind: "value", text: "token" });
  });

  test("B062: a certificate that is not valid yet is waited for only while the clock is unsynchronised", () => {
    const error = appError("tls-not-yet-valid", "x");
    expect(judgeHttpError(error, "u", false).kind).toBe("later");
    expect(judgeHttpError(error, "u", true).kind).toBe("never");
  });

  test("2 s doubling to 32 s", () => {
    expect([0, 1, 2, 3, 4, 5, 50].map(backoffMs)).toEqual([2000, 4000, 8000, 16_000, 32_000, 32_000, 32_000]);
  });

  test("an error shows no password and no query of an URL", () => {
    expect(shownUrl("https://user:pw@vault.example/a?token=x#y")).toBe("https://vault.example/a");
  });

  test("only an address inside a tunnel is behind the overlay", () => {
    const document = makeDocument({
      wireguard: [
        {
          name: "wg0",
          address: ["10.10.0.2/24"],
          nodeAddress: false,
          generateKey: true,
          peers: [{ publicKey: "k", allowedIPs: ["10.10.0.0/24", "10.20.0.0/16", "0.0.0.0/0"] }],
        },
      ],
    });
    expect(isBehindOverlay("https://10.20.1.1/token", document)).toBe(true);
    expect(isBehindOverlay("https://192.0.2.1/token", document)).toBe(false);
    expect(isBehindOverlay("https://vault.example/token", document)).toBe(false);
    const named = (...addresses: string[]) =>
      isBehindOverlay("https://vault.example/token", document, [{ name: "vault.example", addresses }]);
    expect([named("10.20.1.1"), named("10.20.1.1", "192.0.2.1"), named("192.0.2.1"), named()]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("resolving", () => {
  const field = (path: string, source: object) => ({ path, source });

  test("a file that comes late is waited for, and the wait is said", async () => {
    const host = fakeHost();
    const messages: string[] = [];
    const resolving = resolveSecrets(host, [field("join.tokenFrom", { file: "/etc/corium/token", waitFor: "5m" })], {
      report: (message) => {
        messages.push(message);
        if (messages.length === 3) host.put("/etc/corium/token", "abc\n");
      },
    });
    const got = await resolving;
    expect(got.ok ? got.value.get("join.tokenFrom")?.reveal() : "").toBe("abc");
    expect(messages[0]).toContain("waiting up to 5m for join.tokenFrom: /etc/corium/token is not there");
    expect(host.clock.monotonicMs()).toBeGreaterThanOrEqual(14_000);
  });

  test("without waitFor one attempt is made; with it the limit holds", async () => {
    const once = fakeHost();
    expect((await resolveSecrets(once, [field("a", { file: "/x" })], { report: () => {} })).ok).toBe(false);
    const limited = fakeHost();
    const beforeMs = limited.clock.monotonicMs();
    expect((await resolveSecrets(limited, [field("a", { file: "/x", waitFor: "90s" })], { report: () => {} })).ok).toBe(
      false,
    );
    expect(limited.clock.monotonicMs() - beforeMs).toBe(90_000);
  });

  test("B087: a token that was fetched once is kept for the retry, but a new one at the source is preferred", async () => {
    const host = fakeHost({ files: { "/etc/k0s/join-token": "stored\n" } });
    const join = {
      path: "join.tokenFrom",
      source: { file: "/token", waitFor: "1h" },
      fallbackFile: "/etc/k0s/join-token",
    };
    const get = async (): Promise<string | undefined> => {
      const got = await resolveSecrets(host, [join], { report: () => {} });
      return got.ok ? got.value.get("join.tokenFrom")?.reveal() : undefined;
    };
    const beforeMs = host.clock.monotonicMs();
    expect(await get()).toBe("stored");
    expect(host.clock.monotonicMs()).toBe(beforeMs);
    host.put("/token", "fresh\n");
    expect(await get()).toBe("fresh");
  });

  test("401 is not waited out, and every failing field is named, none with its secret", async () => {
    const host = fakeHost({ files: { "/auth": "bearer-secret\n" } });
    let sentBearer = "";
    host.setHttp(async ({ bearer }) => {
      sentBearer = bearer?.reveal() ?? "";
      return ok({ status: 401, body: new TextEncoder().encode("bearer-secret"), url: "" });
    });
    const fields = [
      field("join.tokenFrom", { url: "https://v.example/t?key=s3cret", authFile: "/auth", waitFor: "1h" }),
      field("ha.authPassFrom", { file: "/nope" }),
    ];
    const got = await resolveSecrets(host, fields, { report: () => {} });
    expect(sentBearer).toBe("bearer-secret");
    const text = JSON.stringify(got);
    expect(text).toContain("join.tokenFrom");
    expect(text).toContain("ha.authPassFrom");
    expect(text).not.toContain("bearer-secret");
    expect(text).not.toContain("s3cret");
  });

  test("the certificates of the site, kept at the installation, are trusted for a secret's server", async () => {
    const host = fakeHost({ files: { "/etc/corium/site-ca.pem": "PEM of the site" } });
    const trusted: (string | undefined)[] = [];
    host.setHttp(async ({ trust }) => {
      trusted.push(trust);
      return ok({ status: 200, body: new TextEncoder().encode("t\n"), url: "" });
    });
    const get = () => resolveSecrets(host, [field("a", { url: "https://v/" })], { report: () => {} });
    await get();
    await host.files.remove("/etc/corium/site-ca.pem");
    await get();
    expect(trusted).toEqual(["PEM of the site", undefined]);
  });

  test("connection refused becomes the value once the server is there", async () => {
    const host = fakeHost();
    let tries = 0;
    host.setHttp(async () =>
      ++tries < 4
        ? err(appError("refused", "connection refused"))
        : ok({ status: 200, body: new TextEncoder().encode("t\n"), url: "" }),
    );
    const got = await resolveSecrets(host, [field("a", { url: "https://v/", waitFor: "1m" })], { report: () => {} });
    expect(got.ok ? got.value.get("a")?.reveal() : "").toBe("t");
  });
});
