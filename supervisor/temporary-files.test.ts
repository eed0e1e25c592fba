import { expect, test } from "bun:test";
import { nodePaths } from "../kit/paths.ts";
import { temporaryName, temporaryWriter } from "../kit/temporary.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { removeTemporaries } from "./temporary-files.ts";

const paths = nodePaths();
const left = (name = "config.yaml", pid = 77): string => temporaryName(name, pid, 3);

test("a half-written file carries its writer's number, other names carry none", () => {
  expect(temporaryWriter(left())).toBe(77);
  for (const name of ["config.yaml", ".corium-tmp", "x.77-3.corium-tmp", ".x.corium-tmp", ".x.77-3.corium-tmp.bak"]) {
    expect(temporaryWriter(name)).toBeUndefined();
  }
});

test("half-written files of a program that was killed stay for ever, secrets in them", async () => {
  const ours = [
    `/etc/${left("hostname")}`,
    `/etc/corium/${left()}`,
    `/etc/systemd/system/k0scontroller.service.d/${left("x.conf")}`,
    `/run/corium/${left("bootstrap.json")}`,
    `/var/lib/corium/etc/corium/${left()}`,
    `/var/lib/corium/luks/${left("vault.key")}`,
    `/var/lib/corium/${left("bootstrapped")}`,
  ];
  const others = [
    "/etc/corium/config.yaml",
    "/etc/corium/config.yaml.77-3.corium-tmp",
    `/run/corium/medium/${left("on-the-stick")}`,
    `/srv/data/${left("of-somebody")}`,
    `/var/lib/corium/${left("bootstrapped")}.bak`,
  ];
  const files = Object.fromEntries([...ours, ...others].map((path) => [path, "half"]));
  const host = fakeHost({ files });
  expect([...(await removeTemporaries({ host, paths, isNode: true }))].toSorted()).toEqual(ours.toSorted());
  expect(host.paths()).toEqual(others.toSorted());
});

test("a file that is being written now is left to its writer, but not what is older than any write", async () => {
  const path = `/var/lib/corium/${left()}`;
  const host = fakeHost({ files: { [path]: "half", "/proc/77/comm": "corium" } });
  expect(await removeTemporaries({ host, paths, isNode: true })).toEqual([]);
  host.setNow(host.clock.nowMs() + 3_600_000);
  expect(await removeTemporaries({ host, paths, isNode: true })).toEqual([path]);
});

test("away from a node /etc is somebody else's", async () => {
  const path = `/etc/corium/${left()}`;
  const host = fakeHost({ files: { [path]: "half" } });
  expect(await removeTemporaries({ host, paths: nodePaths("/tmp/state", "/tmp/run"), isNode: false })).toEqual([]);
  expect(host.text(path)).toBe("half");
});
