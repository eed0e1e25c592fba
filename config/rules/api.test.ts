import { describe } from "bun:test";
import { realRandom } from "../../host/random.ts";
import { issueClient, mintAuthority } from "../../pki/driver.ts";
import { ruleCases } from "../../test/support/rule-cases.ts";

const nowMs = Date.UTC(2027, 0, 1);
const yearMs = 365 * 86_400_000;
const mint = (atMs: number): ReturnType<typeof mintAuthority> =>
  mintAuthority({ commonName: "operators", nowMs: atMs, random: realRandom });
const [authority, old, early] = await Promise.all([mint(nowMs), mint(nowMs - 11 * yearMs), mint(nowMs + yearMs)]);
const client = await issueClient({ authority, name: "ops", role: "admin", nowMs, random: realRandom });

const inline = (pem: string): string => JSON.stringify(pem);
const api = (...fields: string[]): string => `role: single\napi: {${fields.join(", ")}}\n`;
const ca = `operatorCA: ${inline(authority.certificate)}`;

describe("api", () => {
  ruleCases(
    [
      ["claimed by configuration", api(ca)],
      ["by a file that the node has", api("operatorCAFrom: {file: /ca.pem}")],
      ["maintenance", api("enabled: true")],
      ["off", api("enabled: false")],
      ["{} is absent", api()],
      ["off with a CA", api("enabled: false", ca), "conflict api.operatorCA"],
      [
        "off with all else",
        api("enabled: false", "operatorCAFrom: {file: /c}", "insecure: true", "awaitConfig: true"),
        "conflict api.operatorCAFrom",
        "conflict api.insecure",
        "conflict api.awaitConfig",
      ],
      [
        "off with a CA, the other way round",
        api("operatorCAFrom: {file: /a}", "enabled: false"),
        "conflict api.enabled",
      ],
      ["off while waiting, the other way round", api("awaitConfig: true", "enabled: false"), "conflict api.enabled"],
      ["off and insecure, the other way round", api("insecure: true", "enabled: false"), "conflict api.enabled"],
      ["both CAs: the later one", api("operatorCAFrom: {file: /c}", ca), "conflict api.operatorCA"],
      ["insecure with a CA: the later one", api("enabled: true", ca, "insecure: true"), "conflict api.insecure"],
      [
        "insecure with a CA, the other way round",
        api("enabled: true", "insecure: true", ca),
        "conflict api.operatorCA",
      ],
      ["insecure by default only", api("insecure: true"), "conflict api.insecure"],
      ["insecure in maintenance", api("enabled: true", "insecure: true")],
      [
        "a client's certificate is none of a CA",
        api(`operatorCA: ${inline(client.certificate)}`),
        "value api.operatorCA",
      ],
      [
        "two certificates",
        api(`operatorCA: ${inline(authority.certificate + early.certificate)}`),
        "value api.operatorCA",
      ],
      ["no certificate", api("operatorCA: operators"), "value api.operatorCA"],
      ["a private key", api(`operatorCA: ${inline(authority.privateKey)}`), "compromised api.operatorCA"],
      [
        "a private key beside the certificate",
        api(`operatorCA: ${inline(authority.certificate + authority.privateKey)}`),
        "compromised api.operatorCA",
      ],
      ["an expired one", api(`operatorCA: ${inline(old.certificate)}`), "expired api.operatorCA"],
      ["one of the future", api(`operatorCA: ${inline(early.certificate)}`), "expired api.operatorCA"],
    ],
    { nowMs },
  );
});
