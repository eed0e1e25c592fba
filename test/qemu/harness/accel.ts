/** Which accelerator to use: KVM only when it really runs a kernel, else QEMU's own translation. */
import { accessSync, constants, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Accel = "tcg" | "kvm";

let chosen: Promise<Accel> | undefined;

/** `/dev/kvm` may be there and useless (nested, no permission): a kernel must print a line within ten seconds. */
export function chooseAccel(probeKernel: string | undefined = anyKernel()): Promise<Accel> {
  chosen ??= choose(probeKernel);
  return chosen;
}

async function choose(kernel: string | undefined): Promise<Accel> {
  if (process.env["CORIUM_ACCEL"] === "tcg" || kernel === undefined) return "tcg";
  try {
    accessSync("/dev/kvm", constants.R_OK | constants.W_OK);
  } catch {
    return "tcg";
  }
  return (await canBoot(kernel)) ? "kvm" : "tcg";
}

function anyKernel(): string | undefined {
  const built = join(import.meta.dir, "../../../out/pxe/vmlinuz");
  if (existsSync(built)) return built;
  const found = existsSync("/boot") ? readdirSync("/boot").find((name) => name.startsWith("vmlinuz")) : undefined;
  return found === undefined ? undefined : `/boot/${found}`;
}

async function canBoot(kernel: string): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), "corium-kvm-"));
  const qemu = Bun.spawn(
    // No root file system: the panic at the end is as good a line as any.
    ["qemu-system-x86_64", "-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256", "-nodefaults"].concat(
      ["-display", "none", "-serial", `file:${directory}/serial`, "-no-reboot"],
      ["-kernel", kernel, "-append", "console=ttyS0 panic=-1"],
    ),
    { stdout: "ignore", stderr: "ignore" },
  );
  try {
    const deadline = performance.now() + 10_000;
    while (performance.now() < deadline && qemu.exitCode === null) {
      const printed = await Bun.file(`${directory}/serial`)
        .text()
        .catch(() => "");
      if (printed.includes("Linux version")) return true;
      await Bun.sleep(100);
    }
    return false;
  } finally {
    qemu.kill("SIGKILL");
    await qemu.exited;
    rmSync(directory, { recursive: true, force: true });
  }
}
