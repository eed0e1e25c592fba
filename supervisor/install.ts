/** A live system puts itself on the disk that the document names, and restarts from it. It never becomes a node. */
import type { Host } from "../kit/ports.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import type { ImageSource } from "../provision/install/model.ts";
import type { InstallPlan } from "../provision/install/plan.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";
import type { Obtained } from "./obtain-document.ts";
import { fail } from "../kit/app-error.ts";
import { readSiteAuthority } from "../config/driver.ts";
import { formatFinding, hasErrors } from "../kit/finding.ts";
import { SITE_AUTHORITY } from "../kit/paths.ts";
import { ok } from "../kit/result.ts";
import { carriedArguments, type Firmware, planInstall } from "../provision/install/plan.ts";
import { readMarks, releaseMounts } from "../provision/install/remains/driver.ts";
import { createCarryOver } from "./carry-over.ts";
import { obtainDocument, refusedBy } from "./obtain-document.ts";
import { consentOf, mayGiveUp, spendConsent } from "./own-consent.ts";
import { beginOperation, failed, isSuperseded, type Outcome, rememberDocument, runSteps } from "./run-operation.ts";

export async function installFromLive(services: BootstrapServices): Promise<Outcome> {
  const { reporter } = services;
  const obtained = await obtainDocument(services);
  if (!obtained.ok) return failed(obtained.error);
  if (obtained.value?.document.install === undefined) {
    const message =
      obtained.value === undefined
        ? "waiting to be claimed and given a document with install"
        : `the document from ${obtained.value.found.origin} has no install; a live system never becomes a node`;
    reporter.say({ state: "idle", message });
    return { ok: true };
  }
  const operation = await beginOperation(services, "install");
  if (!operation.ok) return failed(operation.error);
  const installed = await install(services, obtained.value, operation.value);
  if (!installed.ok) return failed(installed.error, operation.value);
  const { host, state } = services;
  const atMs = host.clock.nowMs();
  state.operations.end(operation.value, { phase: "succeeded" }, atMs);
  reporter.say({ state: "done", message: "installed; restarting from the disk" });
  await reporter.flush();
  await host.exec({ argv: ["systemctl", "--no-block", "reboot"] });
  return { ok: true };
}

async function install(
  services: BootstrapServices,
  obtained: Obtained,
  operation: string,
): Promise<Result<void, AppError>> {
  const { host, state, reporter, paths } = services;
  reporter.say({ state: "running", message: "looking at the machine" });
  await releaseMounts(host);
  const kept = await keepSiteAuthority(services);
  if (!kept.ok) return kept;
  const planned = await inspectAndPlanInstall(services, obtained);
  if (!planned.ok) return planned;
  const plan = planned.value;
  for (const finding of plan.findings) if (finding.severity === "warning") reporter.warn(formatFinding(finding));
  if (hasErrors(plan.findings)) return { ok: false, error: refusedBy(plan.findings) };
  const storedAtMs = rememberDocument(services, obtained.found);
  const tables = new Set(plan.steps.flatMap(({ kind, id }) => (kind === "install:partition" ? [id] : [])));
  const carryOver = createCarryOver({
    host,
    stateDir: paths.stateDir,
    snapshotTo: (path) => state.snapshotTo(path),
    documentText: obtained.found.text,
    operation,
  });
  return runSteps(services, {
    operation,
    steps: plan.steps,
    executors: services.installExecutors(carryOver),
    secrets: new Map(),
    isSuperseded: (intent) => isSuperseded(intent, storedAtMs),
    onStep: (step, stepState) => {
      if (stepState !== "done" && stepState !== "skipped") return;
      // From here on the disks tell by themselves that they are this installation's. A consent to more goes along.
      const isLast = tables.delete(step.id) && tables.size === 0;
      if (isLast && consentOf(state)?.disks !== undefined) spendConsent(state, host.clock.nowMs());
    },
  });
}

/** The medium is gone afterwards, and the secrets of the first boot from disk come from the site's servers too. */
async function keepSiteAuthority({ host, boot, cmdline }: BootstrapServices): Promise<Result<void, AppError>> {
  const authority = await readSiteAuthority(host, { boot, cmdline });
  if (!authority.ok) return fail("site-authority", "corium.config.ca= can't be read", { cause: authority.error });
  return authority.value === undefined
    ? ok(undefined)
    : host.files.write(SITE_AUTHORITY, authority.value, { mode: 0o644 });
}

export async function inspectAndPlanInstall(
  services: Pick<BootstrapServices, "host" | "state" | "version" | "cmdline" | "boot" | "readInventory">,
  { document, found }: Obtained,
): Promise<Result<InstallPlan, AppError>> {
  const { host, state, version, cmdline } = services;
  const image = await readImage(services);
  if (!image.ok) return image;
  const inventory = await services.readInventory();
  if (!inventory.ok) return inventory;
  const plan = planInstall({
    document,
    documentSha256: found.sha256,
    inventory: inventory.value,
    image: image.value,
    version,
    args: carriedArguments(cmdline),
    uuid: () => host.random.uuid(),
    intents: state.journal.intents(),
    mayGiveUp: mayGiveUp(state),
    marks: await readMarks(host, inventory.value),
    firmware: await readFirmware(host),
  });
  return ok(plan);
}

/** The kernel shows EFI's own folder where EFI has started it. */
export async function readFirmware(host: Pick<Host, "files">): Promise<Firmware> {
  const efi = await host.files.stat("/sys/firmware/efi");
  return efi.ok && efi.value !== null ? "uefi" : "bios";
}

/** What this live system runs is what it installs. */
export async function readImage({
  host,
  boot,
}: Pick<BootstrapServices, "host" | "boot">): Promise<Result<ImageSource, AppError>> {
  const { image, rootHash } = boot;
  if (image === undefined || rootHash === undefined) {
    return fail("no-image", "this live system does not know its own image", {
      hint: "start it from the ISO or by PXE",
    });
  }
  for (const name of ["vmlinuz", "initrd"]) {
    const stat = await host.files.stat(`${image.directory}/${name}`);
    if (!stat.ok) return stat;
    if (stat.value === null) return fail("no-image", `${image.directory}/${name} is not there`);
  }
  const root = await host.files.stat(`${image.directory}/root.img`);
  if (!root.ok) return root;
  if (root.value === null) return fail("no-image", `${image.directory}/root.img is not there`);
  const { sizeBytes } = root.value;
  return ok({ directory: image.directory, rootBytes: sizeBytes, rootHash, hashOffsetBytes: image.hashOffsetBytes });
}
