/** Going back: the documents that a node keeps, by cctl and by the console's `r`, through the same gate as any other. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "../../api/app.ts";
import { type Listener, listenOnSocket } from "../../api/listener.ts";
import type { Answer } from "../../console/dialogue.ts";
import { beginPrevious, stepPrevious } from "../../console/previous-dialogue.ts";
import type { ApiRequest } from "../../console/request.ts";
import { readTyped } from "../../console/typed.ts";
import { type FakeHost, fakeHost } from "../support/fake-host.ts";
import { type Ran, type RunOptions, runCctl } from "../support/run-cctl.ts";
import { type StoryNode, startStoryNode } from "./story-node.ts";

// A node with TLS, perhaps beside virtual machines.
setDefaultTimeout(60_000);

const BASE = "role: single\nnode: { name: node1 }\n";
const timer = (schedule: string): string => `${BASE}upgrades: { automatic: download, schedule: "${schedule}" }\n`;
const ADDON = `${BASE}addons:\n  - { name: ingress, chart: "oci://r.example.com/ingress" }\n`;

let node: StoryNode;
let operator: FakeHost;
let folder: string;
let socket: Listener;

const cctl = (line: string, options: RunOptions = {}): Promise<Ran> => runCctl(operator, line.split(" "), options);
const running = (): string | undefined => node.state.baseline.get()?.document.text;

const apply = async (document: string): Promise<void> =>
  expect((await ask({ method: "POST", path: "/v1/config", body: { document } })).ok).toBe(true);

beforeEach(async () => {
  node = await startStoryNode();
  operator = fakeHost({ nowMs: Date.now() });
  folder = mkdtempSync(join(tmpdir(), "corium-history-"));
  socket = await listenOnSocket({ path: join(folder, "api.sock"), handle: createApi(node.services).handle });
  await cctl("pki init");
  await cctl(`enroll ${node.address} --code ${node.code()} --fingerprint ${node.fingerprint} --name node1`);
  node.bootstrap(BASE);
});
afterEach(async () => {
  await socket.close();
  await node.close();
  rmSync(folder, { recursive: true });
});

test("of eleven documents the last ten are kept; --previous shows its plan, asks, and two of them change places", async () => {
  for (let hour = 1; hour <= 11; hour += 1) await apply(timer(`Mon ${String(hour).padStart(2, "0")}:00`));
  expect(node.state.documents.list()).toHaveLength(10);
  const [last, before] = [timer("Mon 11:00"), timer("Mon 10:00")];
  const declined = await cctl("apply node1 --previous", { answers: ["n"] });
  expect([declined.status, running()]).toEqual([1, last]);
  expect(declined.out).toContain('~ upgrades.schedule (host) "Mon 11:00" → "Mon 10:00"');
  expect((await cctl("apply node1 --previous", { answers: ["y"] })).status).toBe(0);
  expect(running()).toBe(before);
  expect((await cctl("apply node1 --previous --yes")).status).toBe(0);
  expect(running()).toBe(last);
});

test("going back is no way to drop an add-on either: the same refusal, until it is uninstalled", async () => {
  await apply(ADDON);
  const refused = await cctl("apply node1 --previous --yes");
  expect([refused.status, running()]).toEqual([1, ADDON]);
  expect(refused.err).toContain("kubectl delete chart -n kube-system k0s-addon-chart-ingress");
  node.k0s.uninstalled.add("ingress");
  expect((await cctl("apply node1 --previous --yes")).status).toBe(0);
  expect(running()).toBe(BASE);
});

/** What is said at the console, from `r` on. */
async function typeAtConsole(...words: readonly string[]): Promise<string> {
  const left = [...words];
  const said: string[] = [];
  let turn = beginPrevious("node1");
  for (;;) {
    said.push(...turn.lines);
    const { state, request } = turn;
    if (state === undefined) return said.join("\n");
    turn =
      request === undefined
        ? stepPrevious(state, readTyped(left.shift() ?? "q"))
        : stepPrevious(state, { kind: "answer", answer: await ask(request) });
  }
}

async function ask({ method, path, body, ifMatch }: ApiRequest): Promise<Answer> {
  const answer = await fetch(`http://localhost${path}`, {
    unix: join(folder, "api.sock"),
    method,
    headers: { "content-type": "application/json", ...(ifMatch === undefined ? {} : { "If-Match": ifMatch }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json = (await answer.json()) as { readonly error?: string };
  return answer.ok ? { ok: true, json } : { ok: false, lines: [json.error ?? ""] };
}

test("the console's r goes through the same gate and asks first", async () => {
  await apply(timer("Mon 03:00"));
  expect(await typeAtConsole("q")).toContain("upgrades");
  expect(await typeAtConsole("another name")).toContain("that is not node1");
  expect(running()).toBe(timer("Mon 03:00"));
  expect(await typeAtConsole("node1")).toContain("done: reconciled");
  expect(running()).toBe(BASE);

  await apply(ADDON);
  expect(await typeAtConsole("node1")).toContain("addons[ingress]");
  expect(running()).toBe(ADDON);
});
