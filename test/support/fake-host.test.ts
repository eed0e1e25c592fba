import { expect, test } from "bun:test";

import { ok } from "../../kit/result.ts";
import { MachineDied, fakeHost } from "./fake-host.ts";

test("what a program wrote without sync is gone after a power cut, what the port wrote is there", async () => {
  const fake = fakeHost();
  fake.put("/var/lib/k0s/half", "x");
  await fake.files.write("/srv/whole", "y", { mode: 0o600 });
  fake.crash();
  expect(fake.text("/var/lib/k0s/half")).toBeUndefined();
  expect(fake.text("/srv/whole")).toBe("y");
});

test("of /etc only the kept part survives a boot, and the image's own files come back", async () => {
  const fake = fakeHost({ files: { "/etc/fstab": "image\n" } });
  await fake.files.write("/etc/hostname", "n1\n", { mode: 0o644 });
  await fake.files.write("/etc/motd", "hello\n", { mode: 0o644 });
  await fake.files.write("/etc/fstab", "changed\n", { mode: 0o644 });
  fake.boot();
  expect(fake.text("/etc/hostname")).toBe("n1\n");
  expect(fake.text("/etc/motd")).toBeUndefined();
  expect(fake.text("/etc/fstab")).toBe("image\n");
});

test("a machine that dies before a call has not done it, after it has, and does nothing more until it boots", async () => {
  for (const when of ["before", "after"] as const) {
    const fake = fakeHost();
    fake.dieAt(2, when);
    await fake.files.write("/srv/a", "1", { mode: 0o600 });
    const died = (thrown: unknown): boolean => thrown instanceof MachineDied;
    expect(await fake.files.write("/srv/b", "2", { mode: 0o600 }).catch(died)).toBe(true);
    expect(await fake.files.readText("/srv/a").catch(died)).toBe(true);
    fake.boot();
    expect(fake.text("/srv/b")).toBe(when === "after" ? "2" : undefined);
  }
});

test("programs are handlers, and one that is not there says so", async () => {
  const fake = fakeHost({
    programs: {
      mdadm: (request, machine) => {
        machine.put("/dev/md/data", "");
        return { exitCode: 1, stderr: `no ${request.argv[1]} ${request.stdinText}` };
      },
    },
  });
  expect((await fake.exec({ argv: ["mdadm", "--x"], stdin: "in" })).stderr).toBe("no --x in");
  expect(fake.paths("/dev/")).toEqual(["/dev/md/data"]);
  expect((await fake.exec({ argv: ["zpool"] })).failure).toBe("not-found");
});

test("units: enabled ones start at boot, unknown ones are refused, a written unit file is a unit", async () => {
  let starts = 0;
  const fake = fakeHost({
    units: {
      "k0scontroller.service": {
        onStart: () => {
          starts += 1;
          return ok(undefined);
        },
      },
    },
  });
  expect((await fake.systemd.start("nothing.service")).ok).toBe(false);
  await fake.systemd.enable("k0scontroller.service");
  fake.boot();
  expect(starts).toBe(1);
  await fake.files.write("/etc/systemd/system/a.timer", "", { mode: 0o644 });
  expect((await fake.systemd.start("a.timer")).ok).toBe(true);
});
