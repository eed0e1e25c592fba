import { describe, expect, test } from "bun:test";
import { nodePaths } from "../kit/paths.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { openServerIdentity } from "./server-identity.ts";

const paths = nodePaths();

describe("the server's identity", () => {
  test("is minted once and survives restarts and boots", async () => {
    const host = fakeHost();
    const first = await openServerIdentity(host, paths, "n1");
    host.boot();
    const second = await openServerIdentity(host, paths, "other-name");
    expect(first).toEqual(second);
    expect(host.node("/var/lib/corium/api/server.pem")?.mode).toBe(0o600);
  });

  test("power lost while it is minted leaves none, and the next start makes one", async () => {
    for (const when of ["before", "after"] as const) {
      for (let call = 1; call <= 3; call += 1) {
        const host = fakeHost();
        host.dieAt(call, when);
        const died = await openServerIdentity(host, paths, "n1").then(
          () => false,
          () => true,
        );
        expect(died).toBe(true);
        host.boot();
        expect((await openServerIdentity(host, paths, "n1")).ok).toBe(true);
      }
    }
  });

  test("one that is damaged is never replaced by itself", async () => {
    const host = fakeHost({ files: { "/var/lib/corium/api/server.pem": "half\n" } });
    const opened = await openServerIdentity(host, paths, "n1");
    expect(!opened.ok && opened.error.code).toBe("server-identity");
    expect(host.text("/var/lib/corium/api/server.pem")).toBe("half\n");
  });
});
