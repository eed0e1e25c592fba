/** mdadm on a block machine. Superblocks are written member by member, each flushed by itself. */
import type { ExecResult } from "../../kit/ports.ts";
import type { FakeHost, FakeProgram } from "../support/fake-host.ts";
import type { BlockMachine, Device, Member, Tools } from "./block-machine.ts";
import { flush, MD_OFFSET, memberOf } from "./block-machine.ts";
import { failed, last, settled } from "./disk-tools.ts";

/** Starts what is there of it; a member that lags behind is caught up, as a resync does. */
export function assemble(machine: BlockMachine, uuid: string, candidates: readonly Device[]): boolean {
  const members = candidates
    .filter((device) => memberOf(device)?.uuid === uuid)
    .toSorted((a, b) => (memberOf(a)?.role ?? 0) - (memberOf(b)?.role ?? 0));
  if (members.length === 0) return false;
  const kernelName = `md${127 - machine.arrays.length}`;
  machine.arrays = [...machine.arrays, { kernelName, uuid, members }];
  const [first, ...others] = members.flatMap(({ disks }) => disks);
  if (first === undefined) return false;
  const isInside = (name: string): boolean => Number(name.split(":")[0]) > MD_OFFSET;
  for (const other of others) {
    for (const name of new Set([...first.names(), ...other.names()].filter(isInside))) {
      const value = first.read(name) ?? null;
      if (other.read(name) !== value) other.write(name, { value });
    }
    other.flush();
  }
  return true;
}

function create(machine: BlockMachine, argv: readonly string[], fake: FakeHost): string | Partial<ExecResult> {
  const option = (name: string): string => argv.find((word) => word.startsWith(`--${name}=`))?.split("=")[1] ?? "";
  const devices = Number(option("raid-devices"));
  const members = argv.slice(argv.indexOf("--run") + 1).map((path) => machine.find(path));
  for (const [role, device] of members.entries()) {
    if (device === undefined) return failed("mdadm: cannot open a member: No such file or directory");
    if (machine.isBusy(device)) return failed(`mdadm: super1.x cannot open ${device.path}: Device or resource busy`);
    const value: Member = {
      uuid: option("uuid"),
      name: `any:${option("name")}`,
      level: `raid${option("level")}`,
      role,
      devices,
    };
    device.disks[0]?.write(`${device.base + MD_OFFSET}:md`, { value });
    if (!fake.isTearing) flush(device);
  }
  assemble(
    machine,
    option("uuid"),
    members.flatMap((each) => each ?? []),
  );
  return "";
}

export function raidTools(machine: BlockMachine): Tools {
  const mdadm: FakeProgram = ({ argv }, fake) => {
    const answer = act(argv, fake);
    machine.publish(fake);
    return answer;
  };
  function act(argv: readonly string[], fake: FakeHost): string | Partial<ExecResult> {
    const device = machine.find(last(argv));
    switch (argv[1]) {
      case "--create":
        return create(machine, argv, fake);
      case "--assemble": {
        const uuid = argv.find((word) => word.startsWith("--uuid="))?.slice("--uuid=".length) ?? "";
        const members = argv.slice(argv.indexOf("--run") + 1).flatMap((path) => machine.find(path) ?? []);
        const stranger = members.find((each) => memberOf(each)?.uuid !== uuid);
        if (stranger !== undefined) return failed(`mdadm: ${stranger.path} has wrong uuid.`, 2);
        return assemble(machine, uuid, members) ? "" : failed("mdadm: no devices found for the array");
      }
      case "--stop":
        machine.arrays = machine.arrays.filter(({ kernelName }) => `/dev/${kernelName}` !== last(argv));
        return "";
      case "--zero-superblock":
        if (device === undefined || memberOf(device) === undefined)
          return failed("mdadm: Unrecognised md component device");
        device.disks[0]?.write(`${device.base + MD_OFFSET}:md`, { value: null });
        settled(machine, device, fake);
        return "";
      case "--detail": {
        const array = machine.arrays.find(({ kernelName }) => `/dev/${kernelName}` === last(argv));
        const member = array?.members[0] === undefined ? undefined : memberOf(array.members[0]);
        return member === undefined ? failed("mdadm: cannot open the array") : exported(member);
      }
      case "--examine": {
        const member = device === undefined ? undefined : memberOf(device);
        if (member === undefined) return failed(`mdadm: No md superblock detected on ${last(argv)}.`);
        if (argv[2] === "--export") return exported(member);
        return `     Raid Level : raid1\n    Data Offset : 2048 sectors\n    Device Role : Active device ${member.role}\n`;
      }
      default:
        return failed(`mdadm: ${argv.join(" ")} is not known here`, 2);
    }
  }
  return { mdadm };
}

const exported = ({ uuid, name, level, devices }: Member): string =>
  `MD_LEVEL=${level}\nMD_DEVICES=${devices}\nMD_METADATA=1.2\nMD_UUID=${uuid}\nMD_NAME=${name}\n`;
