/**
 * Runs every test file, each in a process of its own: fast ones side by side, then those on loop devices one by one,
 * then the virtual machines, two at a time. The last line is `N passed, N failed`; its numbers come from the reports
 * of the files it expected, not from what they print.
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { buildTestImage } from "./qemu/harness/image.ts";
import { installedDisk } from "./qemu/harness/installed.ts";
import { EMULATOR_FLAW_SAID } from "./qemu/harness/serial.ts";
import { findTestFiles, type TestClass, type TestFile } from "./runner/files.ts";
import { isMet } from "./runner/needs.ts";
import { judge, type Verdict } from "./runner/report.ts";

const repository = join(import.meta.dir, "..");
const reports = join(repository, "out/test");
const alive = new Set<number>();

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** The file and all it started: they are one process group. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

async function runFile(file: TestFile): Promise<{ readonly verdict: Verdict; readonly output: string }> {
  const base = join(reports, file.path.replaceAll("/", "_"));
  const report = `${base}.xml`;
  rmSync(report, { force: true });
  const argv = [process.execPath, "test", "--isolate", "--timeout", file.kind === "fast" ? "60000" : "120000"];
  argv.push("--reporter=junit", `--reporter-outfile=${report}`, `./${file.path}`);
  // A file, not a pipe: what a test leaves running could hold a pipe open for ever.
  const log = openSync(`${base}.log`, "w");
  const child = Bun.spawn(argv, {
    cwd: repository,
    stdin: "ignore",
    stdout: log,
    stderr: log,
    detached: true,
    // As it is now: without this a child gets what this process was started with.
    env: { ...process.env },
  });
  alive.add(child.pid);
  let isOverBudget = false;
  const timer = setTimeout(() => {
    isOverBudget = true;
    killGroup(child.pid);
  }, file.budgetSeconds * 1000);
  await child.exited;
  clearTimeout(timer);
  killGroup(child.pid);
  alive.delete(child.pid);
  closeSync(log);
  const xml = existsSync(report) ? readFileSync(report, "utf8") : undefined;
  const ending = { exitCode: child.exitCode, isOverBudget, budgetSeconds: file.budgetSeconds };
  return {
    verdict: judge(xml === undefined ? ending : { ...ending, xml }, isMet),
    output: readFileSync(`${base}.log`, "utf8").trimEnd(),
  };
}

interface Total {
  passed: number;
  failed: number;
  skipped: number;
  files: number;
}

async function runOne(file: TestFile, total: Total, of: number): Promise<void> {
  const started = performance.now();
  if (file.kind === "vm") say(`     …  ${file.path} (at most ${file.budgetSeconds} s)`);
  let { verdict, output } = await runFile(file);
  if (verdict.failed > 0 && output.includes(EMULATOR_FLAW_SAID)) {
    say(`        ${file.path}: ${EMULATOR_FLAW_SAID}; the whole file once more, after`);
    for (const problem of verdict.problems) say(`        ${problem}`);
    const log = join(reports, `${file.path.replaceAll("/", "_")}.log`);
    renameSync(log, `${log}.broken`);
    ({ verdict, output } = await runFile(file));
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(6);
  total.files += 1;
  total.passed += verdict.passed;
  total.failed += verdict.failed;
  total.skipped += verdict.skipped;
  const word = verdict.failed > 0 ? "FAIL" : "ok";
  say(`${seconds}s ${word.padEnd(4)} ${String(total.files).padStart(3)}/${of}  ${file.path} (${verdict.passed})`);
  for (const reason of verdict.reasons) say(`          skipped: ${reason}`);
  if (verdict.failed === 0) return;
  say(
    output
      .split("\n")
      .map((line) => `        | ${line}`)
      .join("\n"),
  );
  for (const problem of verdict.problems) say(`        ${problem}`);
}

/** From when on files that go last are not begun, so that a slow machine ends in time and says what it left out. */
let lateAfterMinutes = Number.POSITIVE_INFINITY;

const isLate = (): boolean => performance.now() > lateAfterMinutes * 60_000;

function leaveOut(file: TestFile, total: Total): void {
  total.files += 1;
  total.skipped += 1;
  say(`        skipped: ${file.path}: after ${lateAfterMinutes} minutes on this machine it is not begun any more`);
  say(`                 alone: bun test/run.ts ${file.path}`);
}

async function runAll(files: readonly TestFile[], jobs: number, total: Total, of: number): Promise<void> {
  const queue = [...files];
  const worker = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      if (file.isLast && isLate()) leaveOut(file, total);
      else await runOne(file, total, of);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

/** Two machines at once: each waits for its disks and for itself half of the time. */
const MACHINES_AT_ONCE = 2;

type Build = { readonly directory: string } | { readonly problem: string };

/**
 * Image and installed disk are made once for all files, beside the fast tests: most of a first build waits for
 * packages. Each file would make them by itself otherwise.
 */
async function buildImage(): Promise<Build> {
  try {
    const image = await buildTestImage();
    say("        the image of the tests is built");
    await installedDisk(image);
    say("        it installed itself to the disk that the machines' tests start from");
    return { directory: dirname(image.iso) };
  } catch (error) {
    return { problem: String(error) };
  }
}

async function runMachines(
  files: readonly TestFile[],
  image: Promise<Build> | undefined,
  jobs: number,
  total: Total,
  of: number,
): Promise<void> {
  let wanted = files;
  const build = await image;
  if (build !== undefined && "directory" in build) process.env["CORIUM_VM_IMAGE"] = build.directory;
  if (build !== undefined && "problem" in build) {
    say(build.problem);
    total.failed += 1;
    wanted = files.filter((file) => !file.needsImage);
  }
  await runAll(wanted, Math.min(jobs, MACHINES_AT_ONCE), total, of);
}

const USAGE = `usage: bun test/run.ts [--only fast|loop|vm]… [--nightly] [--jobs N] [--late-after MINUTES] [--list] [PART-OF-A-PATH]…
`;

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      only: { type: "string", multiple: true },
      jobs: { type: "string" },
      "late-after": { type: "string" },
      list: { type: "boolean" },
      nightly: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const only = (values.only ?? []).flatMap((word) => word.split(","));
  const unknown = only.find((word) => !["fast", "loop", "vm"].includes(word));
  if (unknown !== undefined) {
    process.stderr.write(`--only takes fast, loop or vm, not "${unknown}"\n${USAGE}`);
    return 2;
  }
  const files = findTestFiles(repository, values.nightly === true)
    .filter((file) => only.length === 0 || only.includes(file.kind))
    .filter((file) => positionals.length === 0 || positionals.some((part) => file.path.includes(part)));
  if (values.list === true) {
    for (const file of files) say(`${file.kind.padEnd(4)} ${String(file.budgetSeconds).padStart(4)} s  ${file.path}`);
    return 0;
  }
  if (values["late-after"] !== undefined) lateAfterMinutes = Number(values["late-after"]);
  if (Number.isNaN(lateAfterMinutes)) {
    process.stderr.write(`--late-after takes minutes\n${USAGE}`);
    return 2;
  }
  mkdirSync(reports, { recursive: true });
  const total: Total = { passed: 0, failed: 0, skipped: 0, files: 0 };
  const of = (kind: TestClass): readonly TestFile[] => files.filter((file) => file.kind === kind);
  const jobs = Math.max(1, Number(values.jobs ?? availableParallelism()));
  const image = of("vm").some((file) => file.needsImage) ? buildImage() : undefined;
  await runAll(of("fast"), jobs, total, files.length);
  await runAll(of("loop"), 1, total, files.length);
  await runMachines(of("vm"), image, jobs, total, files.length);
  if (total.files !== files.length || files.length === 0) {
    say(`${files.length} test files were expected, ${total.files} ran`);
    total.failed += 1;
  }
  const skipped = total.skipped === 0 ? "" : `, ${total.skipped} skipped`;
  say(`${total.passed} passed, ${total.failed} failed${skipped}`);
  return total.failed === 0 ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    for (const pid of alive) killGroup(pid);
    process.exit(130);
  });
process.exit(await main(process.argv.slice(2)));
