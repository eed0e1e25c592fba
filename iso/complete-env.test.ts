import { describe, expect, test } from "bun:test";
import { fakeHost } from "../test/support/fake-host.ts";
import type { FakeHost } from "../test/support/fake-host.ts";
import { decodeBootEnv, encodeBootEnv, newBootEnv } from "./bootenv.ts";
import { completeEnv } from "./driver.ts";

const installation = "0123456789abcdef0123456789abcdef";
const path = "/run/corium/esp/corium/env";
const facts = {
  mode: "disk",
  slot: "A",
  installation,
  partUuids: { esp: "e", boot: "b", root: "r", state: "s", data: "d" },
} as const;

/** `dd` writes its stdin over the file as it lies. */
function node(env: Uint8Array | undefined): FakeHost {
  const host = fakeHost({
    programs: {
      mount: () => "",
      umount: () => "",
      dd: ({ stdin }, fake) => {
        fake.put(path, stdin instanceof Uint8Array ? stdin : "");
        return "";
      },
    },
  });
  if (env !== undefined) host.put(path, env);
  return host;
}

describe("power lost in the last act of an installation leaves a node that can never change its slot", () => {
  test.each([
    ["there was no environment yet", undefined],
    ["its name was durable before its size", new Uint8Array()],
  ])("%s", async (_, env) => {
    const host = node(env);
    expect(await completeEnv(host, facts)).toEqual({ ok: true, value: undefined });
    expect(decodeBootEnv(host.node(path)?.content ?? new Uint8Array())).toMatchObject({
      ok: true,
      value: { id: installation, good: "A" },
    });
  });

  test("one that can be read stays as it is", async () => {
    const env = encodeBootEnv({ ...newBootEnv(installation), generation: 100_000_007 });
    const host = node(env);
    expect((await completeEnv(host, facts)).ok).toBe(true);
    expect(host.calls.filter((call) => call.startsWith("exec dd"))).toEqual([]);
  });
});
