/**
 * `bun test/qemu/k0s-sim/build.ts OUTDIR`: the stand-in as usr/bin/k0s and usr/lib/k0s-sim/k0s.js below OUTDIR, with its byte
 * code beside it: a node asks k0s all the time, and parsing was most of what an emulated machine did.
 */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** On a node corium itself is the runtime, which saves the image 100 MB; elsewhere bun is. */
const LAUNCHER = `#!/bin/sh
# k0s-sim: a stand-in for k0s in tests, this is not Kubernetes.
# No settings file of the working folder is obeyed.
K0S_SIM_EXE=$(readlink -f "$0")
export K0S_SIM_EXE
script=$(dirname "$K0S_SIM_EXE")/../lib/k0s-sim/k0s.js
if [ -x /usr/bin/corium ] && [ -z "$K0S_SIM_BUN" ]; then
  BUN_BE_BUN=1 exec /usr/bin/corium --config=/dev/null run --no-install --no-env-file "$script" "$@"
fi
exec "\${K0S_SIM_BUN:-bun}" --config=/dev/null run --no-install --no-env-file "$script" "$@"
`;

export async function buildStandIn(directory: string): Promise<void> {
  const result = await Bun.build({
    entrypoints: [join(import.meta.dir, "main.ts")],
    outdir: join(directory, "usr/lib/k0s-sim"),
    naming: "k0s.[ext]",
    target: "bun",
    format: "cjs",
    bytecode: true,
    minify: { whitespace: true, syntax: true, identifiers: false },
  });
  if (!result.success) throw new Error(`bundling failed: ${result.logs.map((log) => log.message).join("\n")}`);
  mkdirSync(join(directory, "usr/bin"), { recursive: true });
  writeFileSync(join(directory, "usr/bin/k0s"), LAUNCHER);
  chmodSync(join(directory, "usr/bin/k0s"), 0o755);
}

if (import.meta.main) {
  const directory = process.argv[2];
  if (directory === undefined) {
    process.stderr.write("usage: bun test/qemu/k0s-sim/build.ts OUTDIR\n");
    process.exit(2);
  }
  await buildStandIn(directory);
}
