/**
 * `corium link vrrp DEVICE [SECONDS]`, `corium link ask DEVICE ADDRESS`: what only raw sockets tell of a link, as JSON.
 * Programs of their own, run by bootstrap and daemon as arping is: whoever calls keeps to the ports it has.
 */
import { askLink, hearVrrp } from "../host/raw-link.ts";
import { realHost } from "../host/real.ts";
import { parseAdvertisement, parseNeighbour, solicitation } from "../k0s/vip/parse.ts";
import type { AppError } from "../kit/app-error.ts";
import { formatError } from "../kit/app-error.ts";
import type { Command } from "../kit/command.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";

const LONGEST_SECONDS = 60;

export const linkCommand: Command = async ([what, device, more, ...rest], io) => {
  const isGiven = device !== undefined && /^[^\s/]{1,15}$/.test(device) && rest.length === 0;
  const seconds = Number(more ?? 4);
  let found: Result<readonly object[] | readonly string[], AppError> | undefined;
  if (isGiven && what === "vrrp" && seconds > 0 && seconds <= LONGEST_SECONDS) found = await vrrp(device, seconds);
  if (isGiven && what === "ask" && more?.includes(":") === true) found = await ask(device, more);
  if (found === undefined) {
    io.err("usage: corium link vrrp DEVICE [SECONDS] | corium link ask DEVICE IPV6-ADDRESS\n");
    return 2;
  }
  if (!found.ok) {
    io.err(`corium link: ${formatError(found.error)}\n`);
    return 1;
  }
  io.out(`${JSON.stringify(found.value)}\n`);
  return 0;
};

async function vrrp(device: string, seconds: number): Promise<Result<readonly object[], AppError>> {
  const heard = new Map<string, object>();
  const done = await hearVrrp(device, seconds * 1_000, ({ bytes, from }) => {
    const advertisement = parseAdvertisement(bytes, from);
    if (advertisement !== undefined) heard.set(`${advertisement.from} ${advertisement.virtualRouterId}`, advertisement);
  });
  return done.ok ? ok([...heard.values()]) : done;
}

async function ask(device: string, address: string): Promise<Result<readonly string[], AppError>> {
  const mac = await realHost().files.readText(`/sys/class/net/${device}/address`);
  if (!mac.ok) return mac;
  const answered = new Set<string>();
  const done = await askLink(device, solicitation(address, mac.value.trim()), ({ bytes }) => {
    const found = parseNeighbour(bytes, address);
    if (found !== undefined) answered.add(found);
  });
  return done.ok ? ok([...answered]) : done;
}
