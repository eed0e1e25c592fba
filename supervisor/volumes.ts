/** Encrypted volumes of the node as the API has them: which there are, recovery keys, opening one by hand. */
import type { Document } from "../config/document.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Secret } from "../kit/secret.ts";
import { ok } from "../kit/result.ts";
import type { VolumeReader } from "../luks/driver.ts";
import { mintRecoveryKey, unlockVolume, volumeReader } from "../luks/driver.ts";
import type { KnownVolume } from "../luks/model.ts";
import type { State } from "../state/open.ts";
import { escapePath } from "../systemd/escape.ts";
import { documentReader } from "./known-document.ts";

export interface VolumeOpened {
  /** The TPM opens it again from the next boot on. */
  readonly isBoundAnew: boolean;
  /** Open all the same: what did not work after that. */
  readonly problems: readonly AppError[];
}

export interface Volumes {
  readonly read: VolumeReader;
  known(): readonly KnownVolume[];
  recovery(volume: KnownVolume, isReplacing: boolean): Promise<Result<Secret, AppError>>;
  unlock(volume: KnownVolume, key: Secret): Promise<Result<VolumeOpened, AppError>>;
}

/** Of the document, where the node has made them; also while its first boot is not over yet. */
export function knownVolumes(
  document: Document | undefined,
  state: Pick<State, "owned" | "journal">,
): readonly KnownVolume[] {
  const owned = state.owned.list().filter(({ kind }) => kind === "luks");
  return (document?.luks ?? []).flatMap(({ name, unlock }) => {
    const intent = state.journal
      .intents()
      .find(({ stepId, closedAtMs }) => stepId === `luks:${name}:format` && closedAtMs !== undefined);
    const made = intent?.step as { readonly uuid?: unknown } | undefined;
    const uuid = owned.find((each) => each.name === name)?.uuid ?? made?.uuid;
    return typeof uuid === "string" ? [{ name, uuid, unlock }] : [];
  });
}

export function nodeVolumes(host: Host, state: State): Volumes {
  const readKnown = documentReader(state);
  const read = volumeReader(host);
  const event = (kind: string, severity: "info" | "warning", message: string): void =>
    void state.events.add({ atMs: host.clock.nowMs(), kind, severity, message });
  return {
    read,
    known: () => knownVolumes(readKnown()?.document, state),
    async recovery(volume, isReplacing) {
      const minted = await mintRecoveryKey(host, volume, isReplacing);
      read.forget();
      if (minted.ok) event("recovery-key", "info", `a recovery key of volume ${volume.name} was made and given out`);
      return minted;
    },
    async unlock(volume, key) {
      const opened = await unlockVolume(host, volume, key);
      if (!opened.ok) return opened;
      read.forget();
      const { isBoundAnew, problem } = opened.value;
      event("volume-unlocked", "info", `volume ${volume.name} was opened by hand`);
      if (isBoundAnew) event("volume-bound", "info", `volume ${volume.name} is bound to the TPM as it measures now`);
      const started = await startWhatWaited(host, readKnown()?.document, volume.name);
      const problems = [...(problem === undefined ? [] : [problem]), ...started];
      for (const each of problems) event("volume-problem", "warning", each.message);
      return ok({ isBoundAnew, problems });
    },
  };
}

/** systemd gave up on the mount, and on k0s if that waits for it, when the volume stayed locked. */
async function startWhatWaited(
  { systemd }: Host,
  document: Document | undefined,
  name: string,
): Promise<readonly AppError[]> {
  const point = document?.luks.find((spec) => spec.name === name)?.mountPoint;
  if (document === undefined || point === undefined) return [];
  const unit = `${escapePath(point)}.mount`;
  const found = await systemd.status(unit);
  // Its first boot never got as far: bootstrap makes and starts it.
  if (!found.ok || found.value.loadState !== "loaded") return [];
  await systemd.resetFailed(unit);
  const mounted = await systemd.start(unit);
  if (!mounted.ok) return [mounted.error];
  const k0s = document.role === "worker" ? "k0sworker.service" : "k0scontroller.service";
  const status = await systemd.status(k0s);
  if (!status.ok || status.value.unitFileState !== "enabled") return [];
  if (status.value.activeState === "active" || status.value.activeState === "activating") return [];
  await systemd.resetFailed(k0s);
  const started = await systemd.start(k0s, { noBlock: true });
  return started.ok ? [] : [started.error];
}

/** Said once per boot: such a volume is lost with its TPM, and the TPM says no after a change of firmware. */
export async function remindOfRecovery(
  host: Host,
  state: State,
  volumes: Pick<Volumes, "known" | "read">,
): Promise<void> {
  const reports = await volumes.read(volumes.known());
  if (reports.length === 0 || state.meta.get("reminded-of-recovery") === state.bootId) return;
  state.meta.set("reminded-of-recovery", state.bootId);
  for (const { name, unlock, hasRecoveryKey } of reports) {
    if (unlock !== "tpm2" || hasRecoveryKey !== false) continue;
    const message = `volume ${name} has no recovery key: new firmware, or a new board, would lock it for good; \`cctl luks recovery NODE ${name}\` makes one`;
    state.events.add({ atMs: host.clock.nowMs(), kind: "no-recovery-key", severity: "warning", message });
  }
}
