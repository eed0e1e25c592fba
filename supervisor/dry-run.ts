/** What a first boot or an installation would do here, printed. Looks at the machine, changes nothing. */
import type { AppError } from "../kit/app-error.ts";
import type { CommandIo } from "../kit/command.ts";
import type { Finding } from "../kit/finding.ts";
import type { StepBase } from "../kit/step.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";
import type { Obtained } from "./obtain-document.ts";
import { secretFields } from "../config/secrets.ts";
import { formatError } from "../kit/app-error.ts";
import { formatFinding, hasErrors } from "../kit/finding.ts";
import { ok } from "../kit/result.ts";
import { executorOf } from "../provision/execute.ts";
import { describePlan } from "../provision/plan.ts";
import { inspectAndPlan } from "./bootstrap.ts";
import { inspectAndPlanInstall } from "./install.ts";
import { obstacleOf, readDocument } from "./obtain-document.ts";

export async function dryRun(services: BootstrapServices, io: CommandIo): Promise<number> {
  const source = await services.findDocument();
  if (source.kind === "failed") return complain(io, source.error);
  if (source.kind === "none") {
    io.out("no document: this node would wait to be claimed and given one\n");
    return 0;
  }
  const quiet = {
    ...services,
    reporter: { ...services.reporter, warn: (text: string) => io.err(`warning: ${text}\n`) },
  };
  const obtained = readDocument(quiet, source);
  if (!obtained.ok) return complain(io, obtained.error);
  io.out(`document: ${source.origin} (sha256 ${source.sha256})\n`);
  return services.boot.mode === "live"
    ? dryInstall(services, obtained.value, io)
    : dryBootstrap(services, obtained.value, io);
}

async function dryBootstrap(
  services: BootstrapServices,
  { document, found }: Obtained,
  io: CommandIo,
): Promise<number> {
  const obstacle = obstacleOf(services, { document, found });
  if (obstacle !== undefined) io.out(`first: ${obstacle}\n`);
  const planned = await inspectAndPlan(services, document, found.sha256, secretFields(document), { isDry: true });
  if (!planned.ok) return complain(io, planned.error);
  const { plan } = planned.value;
  // Never run: only the programs are asked for.
  const executors = services.executors({
    clockFloor: async () => ({ imageMs: 0 }),
    warn: () => undefined,
    secretSources: new Map(),
    checkSecret: () => ok(undefined),
    noteSecret: () => undefined,
    secrets: new Map(),
    baseline: { isRecorded: () => false, record: () => ok(undefined) },
    recordMarker: () => undefined,
  });
  return print(io, plan.findings, plan.steps, (step) => executorOf(executors, step).argv(step), plan.rendered.files);
}

async function dryInstall(services: BootstrapServices, obtained: Obtained, io: CommandIo): Promise<number> {
  if (obtained.document.install === undefined) {
    io.out("the document has no install; a live system never becomes a node\n");
    return 0;
  }
  const planned = await inspectAndPlanInstall(services, obtained);
  if (!planned.ok) return complain(io, planned.error);
  const never = async () => ok(true);
  const executors = services.installExecutors({ isComplete: never, copy: async () => ok(undefined) });
  const { findings, steps } = planned.value;
  return print(io, findings, steps, (step) => executorOf(executors, step).argv(step), []);
}

function print<S extends StepBase>(
  io: CommandIo,
  findings: readonly Finding[],
  steps: readonly S[],
  argvOf: (step: S) => readonly (readonly string[])[],
  files: readonly RenderedFile[],
): number {
  for (const finding of findings) io.err(`${formatFinding(finding)}\n`);
  if (hasErrors(findings)) return 1;
  io.out(`\nplan:\n${describePlan(steps, argvOf)}`);
  for (const file of files) {
    io.out(`\n--- ${file.path} (${file.mode.toString(8)})\n${file.content}`);
    if (!file.content.endsWith("\n")) io.out("\n");
  }
  return 0;
}

function complain(io: CommandIo, error: AppError): number {
  io.err(`corium: ${formatError(error)}\n`);
  return 1;
}
