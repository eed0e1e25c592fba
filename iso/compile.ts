/** `bun iso/compile.ts [--outfile FILE] [--version VERSION]`: main.ts → one binary, out/corium; `cctl` is its other name. */
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { BuildError, run } from "./build/run.ts";

const repository = join(import.meta.dir, "..");

/** Not stripped on purpose: the program lies behind the ELF image, and strip would cut it off. */
export function compile(entry: string, outfile: string, version: string): void {
  mkdirSync(dirname(outfile), { recursive: true });
  const partial = `${outfile}.partial`;
  run(
    [
      process.execPath,
      "build",
      "--compile",
      "--bytecode",
      "--format=esm",
      "--minify-syntax",
      // Or the binary would obey .env and bunfig.toml of the folder it is started in.
      "--no-compile-autoload-dotenv",
      "--no-compile-autoload-bunfig",
      "--define",
      `CORIUM_VERSION=${JSON.stringify(version)}`,
      "--outfile",
      partial,
      entry,
    ],
    { cwd: repository },
  );
  renameSync(partial, outfile);
}

export async function versionOf(isRelease: boolean): Promise<string> {
  const { version } = (await Bun.file(join(repository, "package.json")).json()) as { version: string };
  return isRelease ? version : `${version}-dev`;
}

if (import.meta.main) {
  const [flag, value] = process.argv.slice(2);
  const outfile = flag === "--outfile" && value !== undefined ? value : join(repository, "out/corium");
  try {
    compile(join(repository, "main.ts"), outfile, await versionOf(false));
    const cctl = join(dirname(outfile), "cctl");
    rmSync(cctl, { force: true });
    symlinkSync("corium", cctl);
    process.stdout.write(`${outfile}\n`);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`compile: ${error.message}\n`);
    process.exitCode = 1;
  }
}
