import { afterEach, expect, test } from "bun:test";
import { type FakeHost, fakeHost } from "../test/support/fake-host.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import { type Received, type Scripted, type ScriptedNode, scriptedNode } from "../test/support/scripted-node.ts";

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

async function enrolled(answer: (request: Received) => Scripted): Promise<{ host: FakeHost; node: ScriptedNode }> {
  node = await scriptedNode(answer);
  const host = fakeHost({ nowMs: Date.now() });
  await runCctl(host, ["pki", "init"]);
  const pin = `nodes:\n  ${node.address}:\n    fingerprint: ${node.fingerprint}\n    name: node1\n`;
  host.put("/home/ann/.corium/config.yaml", pin);
  return { host, node };
}

/** Without the question for the version that goes before each change. */
const asked = ({ requests }: ScriptedNode): readonly Received[] => requests.filter(({ path }) => path !== "/v1/health");

const key = "aaaaaaaa-bbbbbbbb";

test("the recovery key alone is on stdout, so that it can go straight to where it is kept", async () => {
  const { host, node: at } = await enrolled(() => ({ body: { volume: "vault", recoveryKey: key } }));
  const ran = await runCctl(host, ["luks", "recovery", "node1", "vault"]);
  expect([ran.status, ran.out]).toEqual([0, `${key}\n`]);
  expect(ran.err).toContain("nobody can show it again");
  await runCctl(host, ["luks", "recovery", "node1", "vault", "--replace"]);
  expect(asked(at).map(({ path, body }) => `${path} ${body}`)).toEqual([
    "/v1/luks/vault/recovery {}",
    '/v1/luks/vault/recovery {"replace":true}',
  ]);
});

test("a key goes from stdin or a prompt that does not show it, trimmed, and never from an argument", async () => {
  const { host, node: at } = await enrolled(() => ({ body: { volume: "vault", boundAnew: true, problems: [] } }));
  const ran = await runCctl(host, ["luks", "unlock", "node1", "vault"], { stdin: `${key}\n` });
  expect(ran.out).toBe("volume vault is open\nthe TPM opens it again from the next boot on\n");
  const typed = await runCctl(host, ["luks", "unlock", "node1", "vault"], { answers: [key] });
  expect([typed.status, typed.all.includes(key)]).toEqual([0, false]);
  for (const { body } of asked(at)) expect(JSON.parse(body)).toEqual({ key });
  const argument = await runCctl(host, ["luks", "unlock", "node1", "vault", key]);
  expect([
    argument.status,
    (await runCctl(host, ["luks", "unlock", "node1", "vault"], { stdin: " \n" })).status,
  ]).toEqual([2, 2]);
  expect(asked(at)).toHaveLength(2);
});

test("open, but something after that went wrong: said, and no success", async () => {
  const { host } = await enrolled(() => ({
    body: { volume: "vault", boundAnew: false, problems: ["the TPM is\u001b[2J gone"] },
  }));
  const ran = await runCctl(host, ["luks", "unlock", "node1", "vault"], { stdin: key });
  expect(ran.status).toBe(1);
  expect(ran.out).toStartWith("volume vault is open\nbut: the TPM is");
  expect(ran.out).not.toContain("\u001b");
});
