/** Carries out the steps of luks/model.ts. */
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import type { Secret } from "../../kit/secret.ts";
import type { Executors, StepContext, StepState } from "../../kit/step.ts";
import {
  KEY_FOLDER,
  cryptsetupUnit,
  enrollArgv,
  formatArgv,
  headerPath,
  labelArgv,
  mappingPath,
  syncArgv,
  testKeyArgv,
  testTpmArgv,
  wipePasswordArgv,
  wipeTpmArgv,
} from "../argv.ts";
import { isOpen, readHeader, readHeaderMarks } from "../driver.ts";
import { WRONG_KEY, toolFailed } from "../errors.ts";
import type { LuksEnrollStep, LuksFormatStep, LuksKeyStep, LuksOpenStep, LuksStep } from "../model.ts";
import { hasSlot, isBoundToTpm } from "../parse.ts";
import { CRYPTTAB, withLine } from "../render.ts";

/** Argon2 takes a second or two on a slow machine; a TPM may be slower than that. */
const toolTimeoutMs = 5 * 60_000;
const appearTimeoutMs = 30_000;
const BOOTSTRAP_KEY_BYTES = 64;

export const luksExecutors: Executors<LuksStep> = {
  "luks:key": { argv: (step) => [testKeyArgv(step.device.path, "-")], check: checkKey, run: keepKey },
  "luks:format": {
    argv: (step) => [
      formatArgv(step),
      syncArgv(step.device.path),
      labelArgv(step.device.path, step.label),
      syncArgv(step.device.path),
    ],
    check: checkFormat,
    run: format,
  },
  "luks:enroll": {
    argv: (step) => [
      enrollArgv(step.device.path, step.keyFile),
      testTpmArgv(step.device.path),
      wipePasswordArgv(step.device.path),
    ],
    check: checkEnroll,
    run: enroll,
  },
  "luks:crypttab": {
    argv: () => [],
    check: async (step, { host }) => ok((await crypttab(host)).split("\n").includes(step.line) ? "done" : "todo"),
    run: async (step, { host }) =>
      host.files.write(CRYPTTAB, withLine(await crypttab(host), step.line), { mode: 0o644 }),
  },
  "luks:open": {
    argv: (step) => [["systemctl", "start", cryptsetupUnit(step.name)]],
    check: async (step, { host }) => ok((await isOpen(host, step)) ? "done" : "todo"),
    run: open,
  },
};

async function crypttab(host: Host): Promise<string> {
  const text = await host.files.readText(CRYPTTAB);
  return text.ok ? text.value : "";
}

const secretOf = ({ field }: LuksKeyStep, secrets: StepContext["secrets"]): Secret | undefined => secrets.get(field);

async function checkKey(step: LuksKeyStep, { host, secrets }: StepContext): Promise<Result<StepState, AppError>> {
  const kept = await host.files.readText(step.keyFile);
  return ok(kept.ok && kept.value === secretOf(step, secrets)?.reveal().trim() ? "done" : "todo");
}

/** A header of ours that is there already must open with it: else the file would lock the volume out at the next boot. */
async function keepKey(step: LuksKeyStep, { host, secrets }: StepContext): Promise<Result<void, AppError>> {
  const secret = secretOf(step, secrets);
  if (secret === undefined) return fail("secret-missing", `there is no value for ${step.field}`);
  const text = secret.reveal().trim();
  const marks = await readHeaderMarks(host, step.device.path);
  // Without a label its first key may not be in it yet.
  if (marks.ok && marks.value?.uuid === step.uuid && marks.value.label !== undefined) {
    const tested = await host.exec({
      argv: testKeyArgv(step.device.path, "-"),
      stdin: text,
      timeoutMs: toolTimeoutMs,
    });
    if (tested.exitCode === WRONG_KEY)
      return fail("wrong-key", `${step.field} does not open volume ${step.name}`, {
        hint: "the volume was made with another passphrase: give that one",
      });
    if (tested.exitCode !== 0) return err(toolFailed(`the passphrase of volume ${step.name} can't be tried`, tested));
  }
  return writeKey(host, step.keyFile, text);
}

async function writeKey(host: Host, path: string, content: string | Uint8Array): Promise<Result<void, AppError>> {
  const made = await host.files.mkdir(KEY_FOLDER, { mode: 0o700 });
  return made.ok ? host.files.write(path, content, { mode: 0o600 }) : made;
}

/** Done is a header with both the UUID chosen and the label that is set last: without it the first key may be missing. */
async function checkFormat(step: LuksFormatStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const marks = await readHeaderMarks(host, step.device.path);
  if (!marks.ok) return marks;
  return ok(marks.value?.uuid === step.uuid && marks.value.label === step.label ? "done" : "todo");
}

async function format(step: LuksFormatStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const { path } = step.device;
  const there = await waitFor(host, path, report);
  if (!there.ok) return there;
  const kept = await host.files.stat(step.keyFile);
  if (!kept.ok) return kept;
  if (kept.value === null) {
    if (step.unlock !== "tpm2") return fail("secret-missing", `${step.keyFile} is not there`);
    const key = await writeKey(host, step.keyFile, host.random.bytes(BOOTSTRAP_KEY_BYTES));
    if (!key.ok) return key;
  }
  for (const argv of [formatArgv(step), syncArgv(path), labelArgv(path, step.label), syncArgv(path)]) {
    const ran = await host.exec({ argv, timeoutMs: toolTimeoutMs });
    if (ran.exitCode !== 0) return err(toolFailed(`volume ${step.name} could not be made on ${path}`, ran));
  }
  await host.exec({ argv: ["udevadm", "settle", "--timeout=30"], timeoutMs: 40_000 });
  return ok(undefined);
}

/** Done: the TPM's slot is there, no password opens the volume any more, and the bootstrap key is gone. */
async function checkEnroll(step: LuksEnrollStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const key = await host.files.stat(step.keyFile);
  if (!key.ok) return key;
  if (key.value !== null) return ok("todo");
  const header = await readHeader(host, step.device.path);
  if (!header.ok) return header;
  return ok(isBoundToTpm(header.value) && !hasSlot(header.value, "password") ? "done" : "todo");
}

async function enroll(step: LuksEnrollStep, { host }: StepContext): Promise<Result<void, AppError>> {
  const { path } = step.device;
  const failed = `volume ${step.name} could not be bound to the TPM`;
  const run = async (argv: readonly string[]): Promise<Result<void, AppError>> => {
    const ran = await host.exec({ argv, timeoutMs: toolTimeoutMs });
    return ran.exitCode === 0 ? ok(undefined) : err(toolFailed(failed, ran));
  };
  const opensByTpm = async (): Promise<boolean> =>
    (await host.exec({ argv: testTpmArgv(path), timeoutMs: toolTimeoutMs })).exitCode === 0;

  const before = await readHeader(host, path);
  if (!before.ok) return before;
  if (!isBoundToTpm(before.value) || !(await opensByTpm())) {
    if (hasSlot(before.value, "tpm2")) {
      const wiped = await run(wipeTpmArgv(path, step.keyFile));
      if (!wiped.ok) return wiped;
    }
    const enrolled = await run(enrollArgv(path, step.keyFile));
    if (!enrolled.ok) return enrolled;
    // Never on trust: after this the TPM is all that opens it.
    if (!(await opensByTpm())) return fail("tpm", `${failed}: the TPM does not open it afterwards`);
  }
  const bound = await readHeader(host, path);
  if (!bound.ok) return bound;
  if (hasSlot(bound.value, "password")) {
    const wiped = await run(wipePasswordArgv(path));
    if (!wiped.ok) return wiped;
  }
  const after = await readHeader(host, path);
  if (!after.ok) return after;
  if (hasSlot(after.value, "password") || !(await opensByTpm()))
    return fail("tpm", `${failed}: its slots are not as they should be after the first key was taken away`);
  return host.files.remove(step.keyFile);
}

/** The way of every boot: what works here works then. */
async function open(step: LuksOpenStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const there = await waitFor(host, headerPath(step.uuid), report);
  if (!there.ok) return there;
  const reloaded = await host.systemd.daemonReload();
  if (!reloaded.ok) return reloaded;
  const unit = cryptsetupUnit(step.name);
  await host.systemd.resetFailed(unit);
  const started = await host.systemd.start(unit);
  if (!started.ok) {
    const tail = await host.systemd.journalTail(unit, 8);
    const hint =
      step.unlock === "tpm2"
        ? `the TPM does not open it any more: \`cctl luks unlock NODE ${step.name}\` takes its recovery key`
        : `\`cctl luks unlock NODE ${step.name}\` takes a passphrase`;
    return fail("locked", `volume ${step.name} could not be opened`, {
      cause: started.error,
      details: tail.ok ? tail.value : [],
      hint,
    });
  }
  return waitFor(host, mappingPath(step.name), report);
}

async function waitFor(host: Host, path: string, report: StepContext["report"]): Promise<Result<void, AppError>> {
  const until = host.clock.monotonicMs() + appearTimeoutMs;
  for (;;) {
    const stat = await host.files.stat(path);
    if (stat.ok && stat.value !== null) return ok(undefined);
    if (host.clock.monotonicMs() > until)
      return fail("device-absent", `${path} did not appear within ${appearTimeoutMs / 1000} s`);
    report(`waiting for ${path} to appear`);
    await host.clock.sleep(500);
  }
}
