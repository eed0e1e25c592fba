import { expect, test } from "bun:test";
import { fakeHost } from "../test/support/fake-host.ts";
import { identityReader } from "./disk-identities.ts";

test("disks are looked at when one comes or goes, and not otherwise; paths of one disk are that disk", async () => {
  let looks = 0;
  let isBroken = true;
  const mapping = { path: "/dev/dm-0", kname: "dm-0", type: "mpath", size: 9, children: [] };
  const host = fakeHost({
    programs: {
      udevadm: ({ argv }) => (argv.includes("--name=/dev/vdb") ? "ID_SERIAL_SHORT=FROM-UDEV\n" : ""),
      lsblk: () => {
        looks += 1;
        if (isBroken) return { exitCode: 1 };
        const paths = ["sda", "sdb"].map((name) => {
          return { path: `/dev/${name}`, kname: name, type: "disk", size: 9, serial: "MP", children: [mapping] };
        });
        return JSON.stringify({ blockdevices: [...paths, { path: "/dev/vdb", kname: "vdb", type: "disk", size: 9 }] });
      },
    },
  });
  for (const name of ["sda", "sdb", "vdb", "dm-0", "md127"]) host.put(`/sys/class/block/${name}/diskseq`, "1\n");
  const read = identityReader(host);
  expect((await read()).size).toBe(0);
  isBroken = false;
  const [first, second] = await Promise.all([read(), read()]);
  expect([...first].map(([name, { serial }]) => `${name} ${serial}`).toSorted()).toEqual(["dm-0 MP", "vdb FROM-UDEV"]);
  expect(second).toEqual(first);
  host.put("/sys/class/block/md127/diskseq", "2\n");
  await read();
  expect(looks).toBe(2);
  // Another disk under the same name.
  host.put("/sys/class/block/vdb/diskseq", "2\n");
  await read();
  expect(looks).toBe(3);
});
