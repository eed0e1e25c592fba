import { expect, test } from "bun:test";
import { encodeBootEnv, newBootEnv } from "../../iso/bootenv.ts";
import { arrayNameOf, arrayUuidOf, MIRRORED_ROLES, partUuidsOf } from "../../iso/uuids.ts";
import type { StepContext } from "../../kit/step.ts";
import { fakeMirror, INSTALLATION } from "../../test/support/fake-mirror.ts";
import { systemReplaceExecutors } from "./driver.ts";
import type { MirrorJoinStep, MirrorRebuildStep } from "./model.ts";

const NEW = "fedcba9876543210fedcba9876543210";
const device = { path: "/dev/vdc", identity: { serial: "new", sizeBytes: 1 } };
const joined: MirrorJoinStep = {
  kind: "mirror:join",
  id: "mirror:join",
  title: "",
  device,
  members: MIRRORED_ROLES.map((role) => ({
    name: arrayNameOf(role),
    arrayUuid: arrayUuidOf(INSTALLATION, role),
    partUuid: partUuidsOf(NEW)[role],
  })),
};
const rebuilt: MirrorRebuildStep = {
  kind: "mirror:rebuild",
  id: "mirror:rebuild",
  title: "",
  device,
  installation: INSTALLATION,
};

/** The second disk is gone, and a third one has its table already. */
function machine() {
  const mirror = fakeMirror(new TextDecoder().decode(encodeBootEnv(newBootEnv(INSTALLATION))));
  const [, second] = mirror.disks;
  Object.assign(second, {
    name: "vdc",
    installation: NEW,
    isBlank: true,
    isFat: false,
    state: "out",
    code: "",
    core: "",
  });
  second.esp.clear();
  mirror.show();
  const said: string[] = [];
  const context: StepContext = { host: mirror.host, secrets: new Map(), report: (message) => said.push(message) };
  return { ...mirror, second, said, context };
}

const { "mirror:join": join, "mirror:rebuild": rebuild } = systemReplaceExecutors;

test("mdadm takes no path as long as md-uuid-…: the arrays are named to it as the kernel does", async () => {
  const { host, context } = machine();
  await join.run(joined, context);
  const changing = host.calls.filter((call) => /mdadm .*(--add|--readwrite|--remove)/.test(call));
  expect(changing.length).toBeGreaterThan(0);
  expect(changing.filter((call) => !/mdadm \/dev\/md12\d --|mdadm --readwrite \/dev\/md12\d$/.test(call))).toEqual([]);
});

test("a blank disk becomes a member of every array once, and is made bootable when it has everything", async () => {
  const { host, context, second, show, said } = machine();
  expect(await join.check(joined, context)).toEqual({ ok: true, value: "todo" });
  expect(await join.run(joined, context)).toEqual({ ok: true, value: undefined });
  expect(await join.check(joined, context)).toEqual({ ok: true, value: "done" });
  show();
  expect(await rebuild.check(rebuilt, context)).toEqual({ ok: true, value: "todo" });
  const waiting = rebuild.run(rebuilt, context);
  await host.clock.sleep(20_000);
  expect(said).toContain("copying the system to /dev/vdc");
  expect(second.core).toBe("");
  second.state = "in_sync";
  show();
  expect(await waiting).toEqual({ ok: true, value: undefined });
  expect([second.code, second.core]).toEqual(["boot code", "core"]);
  expect(await rebuild.check(rebuilt, context)).toEqual({ ok: true, value: "done" });
});

test("a new disk that is thrown out meanwhile ends the wait, with what to do", async () => {
  const { context, second, show } = machine();
  await join.run(joined, context);
  second.state = "out";
  show();
  const failed = await rebuild.run(rebuilt, context);
  expect(failed).toMatchObject({ ok: false, error: { code: "member-failed" } });
  expect(second.core).toBe("");
});
