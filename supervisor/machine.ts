/** Facts about the running system, for showing only. What can't be read is left out. */
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";

export interface Machine {
  readonly hostname: string;
  readonly machineId: string;
  readonly osName: string;
  readonly kernel: string;
  readonly uptimeSeconds: number;
}

export async function readMachine(host: Host): Promise<Machine> {
  const [hostname, machineId, release, kernel] = await Promise.all(
    ["/proc/sys/kernel/hostname", "/etc/machine-id", "/etc/os-release", "/proc/sys/kernel/osrelease"].map((path) =>
      readTrimmed(host, path),
    ),
  );
  return {
    hostname: hostname ?? "",
    machineId: machineId ?? "",
    osName: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(release ?? "")?.[1] ?? "Corium",
    kernel: kernel ?? "",
    uptimeSeconds: Math.floor(host.clock.monotonicMs() / 1000),
  };
}

export async function readBootFacts(host: Host, paths: Pick<Paths, "bootFacts">): Promise<BootFacts | undefined> {
  const text = await readTrimmed(host, paths.bootFacts);
  if (text === undefined) return undefined;
  try {
    const facts = JSON.parse(text) as BootFacts;
    return facts.mode === "live" || facts.mode === "disk" ? facts : undefined;
  } catch {
    return undefined;
  }
}

/** `v1.34.1+k0s.0`; undefined where there is no k0s. It can't change under a read-only root: asked once. */
export function k0sVersionReader(host: Host): () => Promise<string | undefined> {
  let asked: Promise<string | undefined> | undefined;
  return () => {
    asked ??= host.exec({ argv: ["k0s", "version"], timeoutMs: 20_000 }).then((result) => {
      const version = /^v\d+\.\d+\.\d+\S*/.exec(result.stdout.trim())?.[0];
      if (version === undefined) asked = undefined;
      return version;
    });
    return asked;
  };
}

async function readTrimmed(host: Host, path: string): Promise<string | undefined> {
  const text = await host.files.readText(path, { maxBytes: 65_536 });
  return text.ok ? text.value.trim() : undefined;
}
