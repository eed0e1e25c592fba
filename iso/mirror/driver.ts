/** Reads the mirror of the running system. */
import { readTree } from "../../disks/driver.ts";
import type { AppError } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import type { Runner } from "../esp.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { Mirror, MirrorArray, MirrorMember } from "./model.ts";
import { buildMirror, memberState, roleOfArray } from "./parse.ts";

/** From sysfs alone: cheap enough to look every few seconds. */
export async function readMirrorArrays(
  host: Pick<Host, "files">,
  installation: string,
): Promise<readonly MirrorArray[]> {
  const names = await host.files.list("/sys/block");
  const arrays: MirrorArray[] = [];
  for (const name of names.ok ? names.value.filter((each) => /^md\d+$/.test(each)) : []) {
    const uuid = await host.files.readText(`/sys/block/${name}/md/uuid`);
    const role = uuid.ok ? roleOfArray(installation, uuid.value) : undefined;
    if (role === undefined) continue;
    const state = await host.files.readText(`/sys/block/${name}/md/array_state`);
    const isAutoReadOnly = state.ok && state.value.trim() === "read-auto";
    arrays.push({ role, path: `/dev/${name}`, isAutoReadOnly, members: await readMembers(host, name) });
  }
  return arrays;
}

async function readMembers(host: Pick<Host, "files">, array: string): Promise<readonly MirrorMember[]> {
  const listed = await host.files.list(`/sys/block/${array}/md`);
  const members: MirrorMember[] = [];
  for (const entry of listed.ok ? listed.value.filter((each) => each.startsWith("dev-")) : []) {
    const kernelName = entry.slice("dev-".length);
    const state = await host.files.readText(`/sys/block/${array}/md/${entry}/state`);
    const node = await host.files.stat(`/sys/class/block/${kernelName}`);
    if (state.ok) members.push({ kernelName, state: memberState(state.value, !node.ok || node.value !== null) });
  }
  return members;
}

export async function readMirror(host: Runner, installation: string): Promise<Result<Mirror, AppError>> {
  const arrays = await readMirrorArrays(host, installation);
  const tree = await readTree(host);
  return tree.ok ? ok(buildMirror(arrays, tree.value)) : tree;
}
