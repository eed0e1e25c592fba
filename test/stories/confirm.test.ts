/** A change that is confirmed or undoes itself, as its operators live through it. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { type FakeHost, fakeHost } from "../support/fake-host.ts";
import { type StoryNode, startStoryNode } from "./story-node.ts";
import { type Transcript, transcript } from "./transcript.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(60_000);

const base = "role: single\ncluster: { name: shop }\nnode: { name: node1 }\n";
const withAddon = `${base}addons:
  - { name: metallb, chart: "oci://r.example.com/metallb", namespace: metallb-system }
`;

let node: StoryNode;
let operator: FakeHost;
let story: Transcript;

beforeEach(async () => {
  node = await startStoryNode();
  operator = fakeHost({ nowMs: Date.now() });
  story = transcript(operator, node);
  await story.type("pki init");
  await story.type("enroll ADDRESS --code CODE --fingerprint FINGERPRINT --name node1");
  node.bootstrap(base);
});
afterEach(() => node.close());

const hasAddon = (): boolean => node.machine.text("/etc/k0s/k0s.yaml")?.includes("metallb") === true;
const recorded = (): string | undefined => node.state.baseline.get()?.document.text;
const phase = (): string | undefined => node.state.operations.list()[0]?.phase;

test("asked, seen over a new connection, kept; declined, it is as before; a script says it by itself", async () => {
  operator.put("node.yaml", withAddon);
  const command = "apply node1 --file node.yaml --confirm-within 2m";
  const declined = await story.type(command, { answers: ["y", "n"] });
  expect([declined.status, hasAddon(), recorded(), phase()]).toEqual([1, false, base, "cancelled"]);
  expect((await story.type(command, { answers: ["y", "y"] })).status).toBe(0);
  expect([hasAddon(), recorded(), phase()]).toEqual([true, withAddon, "succeeded"]);

  story.note("a script");
  operator.put("node.yaml", `${withAddon}upgrades: { automatic: download }\n`);
  await story.type(`${command} --yes`);
  await story.type("status node1");
  await story.type("operations node1");
  const refused = await story.type("apply node1 --file node.yaml --yes");
  expect([refused.status, refused.err.includes("confirm or cancel it first")]).toEqual([1, true]);
  await story.type("confirm node1");
  expect(phase()).toBe("succeeded");
  await story.type("confirm node1");
  story.check("confirming");
});

test("a change of api needs it; a new CA is confirmed with a certificate of its own, and the old one ends", async () => {
  await story.type("pki init --dir new");
  const pem = operator.text("new/operator-ca.pem") ?? "";
  operator.put(
    "node.yaml",
    `${base}api:\n  enabled: true\n  operatorCA: |\n    ${pem.trim().replaceAll("\n", "\n    ")}\n`,
  );
  const plain = await story.type("apply node1 --file node.yaml --yes");
  expect([plain.status, plain.err.includes("--confirm-within 2m")]).toEqual([1, true]);
  expect((await story.type("apply node1 --file node.yaml --confirm-within 10m --yes")).status).toBe(0);
  const old = await story.type("confirm node1");
  expect([old.status, phase()]).toEqual([1, "awaiting-confirmation"]);
  await story.type("trust ADDRESS --fingerprint FINGERPRINT --name node1 --dir new");
  expect((await story.type("confirm node1 --dir new")).status).toBe(0);
  expect((await story.type("health node1")).status).toBe(4);
  expect((await story.type("health node1 --dir new")).status).toBe(0);
  story.check("new-ca");
});

test("ca rotate: proved by the new CA, and the first connection of it ends the old one", async () => {
  const text = `${base}api: { enabled: true, insecure: true } # bench\n`;
  node.bootstrap(text);
  await story.type("ca rotate node1 --to new");
  await story.type("pki init --dir new");
  const declined = await story.type("ca rotate node1 --to new", { answers: ["n"] });
  expect([declined.status, recorded()]).toEqual([1, text]);
  expect((await story.type("ca rotate node1 --to new", { answers: ["y"] })).status).toBe(0);
  expect(node.state.claim.get()?.operatorCA).toBe(operator.text("new/operator-ca.pem") ?? "");
  expect(node.machine.text("/etc/corium/config.yaml")).toBe(recorded() ?? "");
  expect(recorded()).toContain("# bench");
  expect((await story.type("health node1")).status).toBe(4);
  expect((await story.type("health node1 --dir new")).status).toBe(0);
  const again = await story.type("ca rotate node1 --to new --yes --dir new");
  expect([again.status, again.err.includes("obeys that CA already")]).toEqual([1, true]);
  story.check("ca-rotate");
});
