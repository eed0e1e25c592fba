/** The node's own key and certificate: minted once, never again, because clients pin its fingerprint. */
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { mintServer } from "../pki/driver.ts";
import { fingerprintOfPem } from "../pki/fingerprint.ts";
import type { KeyPair } from "../pki/model.ts";
import { isKeyOf } from "../pki/verify.ts";

export interface ServerIdentity extends KeyPair {
  readonly fingerprint: string;
}

/**
 * One file for both: two could be torn apart by a power cut. An identity that is there but can't be used is an error,
 * because a new one would look like an attacker to every operator.
 */
export async function openServerIdentity(
  host: Host,
  paths: Pick<Paths, "apiDir">,
  hostname: string,
): Promise<Result<ServerIdentity, AppError>> {
  const path = `${paths.apiDir}/server.pem`;
  const old = await host.files.readText(path, { maxBytes: 65_536 });
  if (old.ok) return parseIdentity(old.value, path);
  if (old.error.code !== "ENOENT") return old;
  const made = await mintServer({ hostname, nowMs: host.clock.nowMs(), random: host.random });
  const folder = await host.files.mkdir(paths.apiDir, { mode: 0o700 });
  if (!folder.ok) return folder;
  const text = made.privateKey + made.certificate;
  const written = await host.files.write(path, text, { mode: 0o600 });
  return written.ok ? parseIdentity(text, path) : written;
}

function parseIdentity(text: string, path: string): Result<ServerIdentity, AppError> {
  const certificate = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----\n?/.exec(text)?.[0];
  const privateKey = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----\n?/.exec(text)?.[0];
  const fingerprint = certificate === undefined ? undefined : fingerprintOfPem(certificate);
  if (
    certificate === undefined ||
    privateKey === undefined ||
    fingerprint === undefined ||
    !isKeyOf(certificate, privateKey)
  ) {
    return fail("server-identity", `${path} does not hold a certificate with its key`, {
      hint: "restore it from a backup; remove it only if all operators will pin the new fingerprint",
    });
  }
  return ok({ certificate, privateKey, fingerprint });
}
