/** Whether a volume can be bound to this machine's TPM, and whether that would mean anything. */
import type { Finding } from "../kit/finding.ts";
import type { TpmFacts } from "./model.ts";

export const PCR7_ARGUMENT = "corium.luks-pcr7";
export const ACKNOWLEDGED = "acknowledged";

const error = (code: string, path: string, message: string, hint: string): Finding => ({
  severity: "error",
  code,
  path,
  message,
  hint,
});

/**
 * PCR 7 measures whose programs the firmware starts. Without Secure Boot, or under a BIOS, it is the same whatever is
 * started, so that a key bound to it opens for everybody at the machine.
 */
export function lintTpm(name: string, path: string, facts: TpmFacts): readonly Finding[] {
  if (facts.versionMajor !== 2) {
    const found = facts.versionMajor === undefined ? "no TPM" : `a TPM of version ${facts.versionMajor}`;
    const message = `volume ${name} is to be opened by a TPM 2, and this machine has ${found}`;
    return [error("no-tpm2", path, message, "switch the TPM on in the firmware's setup; or unlock: passphrase")];
  }
  if (facts.isEfi && facts.isSecureBoot) return [];
  const why = facts.isEfi ? "Secure Boot is off" : "this machine was started by a BIOS";
  const message = `${why}: PCR 7 of the TPM does not tell one program from another, and volume ${name} is bound to it`;
  if (!facts.isAcknowledged) {
    const hint = `start with Secure Boot; or accept that only a disk that leaves the machine is protected, with the kernel argument ${PCR7_ARGUMENT}=${ACKNOWLEDGED}`;
    return [error("pcr7-unmeasured", path, message, hint)];
  }
  return [
    { ...error("pcr7-unmeasured", path, message, "it was acknowledged on the command line"), severity: "warning" },
  ];
}
