/** Asks a link about the virtual address. Bounded: a few packets, a few seconds. */
import type { Host } from "../../kit/ports.ts";
import type { Advertisement } from "./parse.ts";
import { isLocal, parseAnswered, parseArping, parseHeard } from "./parse.ts";

/** The image's own; what only raw sockets tell is a program of its own (supervisor/link.main.ts). */
const CORIUM = "/usr/bin/corium";
/** Adverts come every second, a slow master's every three; shorter than that nothing would be sure. */
const HEAR_SECONDS = 4;

/**
 * The link addresses of other machines that answer for it, whether this one has it or not: none, one, or too many.
 * `own`: an address of this machine on that link. Undefined where the link can't be asked.
 */
export async function whoAnswers(
  host: Host,
  { device, address, own }: { readonly device: string; readonly address: string; readonly own?: string },
): Promise<readonly string[] | undefined> {
  if (address.includes(":")) {
    const ran = await host.exec({ argv: [CORIUM, "link", "ask", device, address], timeoutMs: 30_000 });
    return ran.exitCode === 0 ? parseAnswered(ran.stdout) : undefined;
  }
  // Without an address of its own it asks as duplicate address detection does, and hears only the first answer.
  const how = own === undefined ? ["-D"] : ["-b", "-s", own];
  const argv = ["arping", ...how, "-c", "2", "-w", "3", "-I", device, address];
  const ran = await host.exec({ argv, timeoutMs: 20_000 });
  // 0 and 1 tell of the number of answers; 2 of a link that is not there (arping(8)).
  return ran.exitCode === 0 || ran.exitCode === 1 ? parseArping(ran.stdout) : undefined;
}

/** Who announces virtual addresses on the link. Undefined where that can't be heard. */
export async function hearAdvertisements(host: Host, device: string): Promise<readonly Advertisement[] | undefined> {
  const argv = [CORIUM, "link", "vrrp", device, String(HEAR_SECONDS)];
  const ran = await host.exec({ argv, timeoutMs: (HEAR_SECONDS + 20) * 1_000 });
  return ran.exitCode === 0 ? parseHeard(ran.stdout) : undefined;
}

/** Has this machine the address, on whichever link? One read, no program; undefined where it can't be read. */
export async function isHeldHere(host: Host, address: string): Promise<boolean | undefined> {
  const text = await host.files.readText(address.includes(":") ? "/proc/net/if_inet6" : "/proc/net/fib_trie");
  return text.ok ? isLocal(address, text.value) : undefined;
}
