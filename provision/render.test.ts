import { expect, test } from "bun:test";
import { makeDocument } from "../test/support/document-fixture.ts";
import { renderNode } from "./render.ts";

const render = (changes: Parameters<typeof makeDocument>[0]) =>
  renderNode({ document: makeDocument(changes), hostname: "debian", machineId: "0123456789abcdef", addresses: {} });

test("a generic hostname is replaced by one that is this machine's", () => {
  const { hostname, files } = render({});
  expect(hostname).toBe("corium-01234567");
  expect(files.find((file) => file.path === "/etc/hostname")?.content).toBe("corium-01234567\n");
});

test("no upgrade timer without automatic upgrades", () => {
  expect(render({}).units).toEqual(["k0scontroller.service"]);
  expect(render({}).files.filter((file) => file.path.includes("upgrade"))).toEqual([]);
});

test("the upgrade timer carries the schedule, its service says that nothing is done", () => {
  const rendered = render({ upgrades: { automatic: "apply", schedule: "Sun 03:00" } });
  const text = (name: string) => rendered.files.find((file) => file.path.endsWith(name))?.content ?? "";
  expect(text("corium-upgrade.timer")).toContain("OnCalendar=Sun 03:00\n");
  expect(text("corium-upgrade.service")).toContain("not in this release");
  expect(rendered.units).toContain("corium-upgrade.timer");
});

test("storage is shown with its UUIDs left open, and k0s waits for mounts in its way", () => {
  const rendered = render({
    raid: [
      {
        name: "data",
        level: 1,
        devices: ["/dev/vdb", "/dev/vdc"],
        spares: [],
        filesystem: "ext4",
        mountPoint: "/var/lib/k0s",
        wipe: false,
      },
    ],
  });
  const paths = rendered.files.map((file) => file.path);
  expect(paths).toContain("/etc/mdadm/mdadm.conf.d/corium-data.conf");
  expect(paths).toContain("/etc/systemd/system/k0scontroller.service.d/50-corium-var-lib-k0s.conf");
  expect(rendered.units).toContain("var-lib-k0s.mount");
});

test("an overlay comes with its key as a placeholder, its interface, and k0s waiting for it", () => {
  const overlay = {
    name: "wg0",
    address: ["10.9.0.1/24"],
    nodeAddress: false,
    generateKey: false,
    privateKey: "hunter22",
    peers: [],
  };
  const { files } = render({ wireguard: [overlay] });
  expect(JSON.stringify(files)).not.toContain("hunter22");
  expect(files.some((file) => file.content.includes("<secret:wireguard[wg0].privateKey>"))).toBe(true);
  expect(files.some((file) => /k0scontroller\.service\.d\/.*wg0/.test(file.path))).toBe(true);
});

test("files come in one order, whatever the document's", () => {
  const paths = render({ upgrades: { automatic: "apply", schedule: "daily" } }).files.map((file) => file.path);
  expect(paths).toEqual(paths.toSorted());
});
