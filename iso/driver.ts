/** `corium bootstate`: the boot environment on the ESP of the disk that was booted, or on those of a mirrored system. */
import { fail } from "../kit/app-error.ts";
import type { AppError } from "../kit/app-error.ts";
import type { BootFacts } from "../kit/paths.ts";
import { ok } from "../kit/result.ts";
import type { Result } from "../kit/result.ts";
import { newBootEnv, newestEnv } from "./bootenv.ts";
import type { BootEnv, Slot } from "./bootenv.ts";
import { decide } from "./bootstate.ts";
import type { Request } from "./bootstate.ts";
import { readEnv, withEspLock, writeEnv } from "./esp.ts";
import type { Runner } from "./esp.ts";
import { readMirror } from "./mirror/driver.ts";
import { espsInSync } from "./mirror/parse.ts";

/** One request of `corium bootstate`; the answer is its standard output. */
export async function bootState(host: Runner, facts: BootFacts, request: Request): Promise<Result<string, AppError>> {
  const { slot } = facts;
  const booted = facts.partUuids?.esp;
  if (facts.mode !== "disk" || slot === undefined || booted === undefined) {
    return fail("not-installed", "this system runs from a medium, there is no boot environment", {
      hint: "boot from the installed disk",
    });
  }
  const plain = `/dev/disk/by-partuuid/${booted}`;
  const work = (): Promise<Result<string, AppError>> => answer(host, facts, { request, slot, booted: plain });
  return facts.isMirrored === true ? withEspLock(host, work) : work();
}

/**
 * Of a disk that booted although its installation had not ended: GRUB takes slot A where it finds no environment, or one
 * that power cut short. Without one the node could never change its slot.
 */
export async function completeEnv(host: Runner, facts: BootFacts): Promise<Result<void, AppError>> {
  const esp = facts.partUuids?.esp;
  if (facts.mode !== "disk" || esp === undefined || facts.installation === undefined) return ok(undefined);
  const device = `/dev/disk/by-partuuid/${esp}`;
  const found = await readEnv(host, device);
  return found.ok ? ok(undefined) : writeEnv(host, device, newBootEnv(facts.installation));
}

interface Asked {
  readonly request: Request;
  readonly slot: Slot;
  /** Device of the ESP that was booted from. */
  readonly booted: string;
}

async function answer(
  host: Runner,
  facts: BootFacts,
  { request, slot, booted }: Asked,
): Promise<Result<string, AppError>> {
  const { installation } = facts;
  const devices = await espDevices(host, facts, booted);
  if (!devices.ok) return devices;
  const read: Result<BootEnv, AppError>[] = [];
  for (const device of devices.value) read.push(await readEnv(host, device));
  const found = newestEnv(read.flatMap((each) => (each.ok ? [each.value] : [])));
  // Of two disks one may hold nothing that can be read: it is written anew by whoever keeps them equal.
  const [first] = read;
  if (found === undefined)
    return first?.ok === false ? first : fail("boot-environment", "there is no boot environment");
  if (found.id !== installation) {
    return fail("boot-environment", `the boot environment belongs to installation ${found.id}, not to ${installation}`);
  }
  const decided = decide(found, request, slot);
  if (!decided.ok) return decided;
  const { next } = decided.value;
  if (next === undefined) return ok(decided.value.answer);
  // One after the other: a cut leaves one of them whole, and the newer generation is right.
  for (const device of devices.value) {
    const written = await writeEnv(host, device, next);
    if (!written.ok) return written;
  }
  return ok(decided.value.answer);
}

/** Of a mirrored system only a disk whose members are all in sync is written: another one may not win over it. */
async function espDevices(
  host: Runner,
  { isMirrored, installation }: BootFacts,
  booted: string,
): Promise<Result<readonly string[], AppError>> {
  if (isMirrored !== true || installation === undefined) return ok([booted]);
  const mirror = await readMirror(host, installation);
  if (!mirror.ok) return mirror;
  const devices = espsInSync(mirror.value);
  if (devices.length > 0) return ok(devices);
  return fail("boot-environment", "no disk of the mirrored system is in sync as a whole", {
    hint: "wait until the copy is complete; `cctl status` shows it",
  });
}
