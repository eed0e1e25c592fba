/** What lets others into the cluster: asked of k0s on a controller, and never anywhere but in its answer. */
import { type AppError, fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import { ok, type Result } from "../../kit/result.ts";
import { Secret } from "../../kit/secret.ts";
import { K0S_BINARY, K0S_DATA } from "../paths.ts";
import { failureOf } from "../service/driver.ts";

const KUBECONFIG_TIMEOUT_MS = 30_000;
/** It writes a Secret to the API, which may be busy. */
const TOKEN_TIMEOUT_MS = 60_000;

export async function readKubeconfig(host: Host): Promise<Result<Secret, AppError>> {
  const argv = [K0S_BINARY, "kubeconfig", "admin"];
  const result = await host.exec({ argv, timeoutMs: KUBECONFIG_TIMEOUT_MS });
  if (result.exitCode !== 0) return fail("kubeconfig", `k0s kubeconfig admin: ${failureOf(result)}`);
  return ok(new Secret("kubeconfig", result.stdout));
}

/** k0s will never let anybody into this cluster: not a failure of now. */
export const NOT_JOINABLE = "not-joinable";

export async function createToken(
  host: Host,
  { role, lifetimeMs }: { readonly role: "worker" | "controller"; readonly lifetimeMs: number },
): Promise<Result<Secret, AppError>> {
  const expiry = `${Math.round(lifetimeMs / 1000)}s`;
  const argv = [K0S_BINARY, "token", "create", "--role", role, "--expiry", expiry];
  const result = await host.exec({ argv, timeoutMs: TOKEN_TIMEOUT_MS });
  if (result.exitCode === 0) return ok(new Secret("token", result.stdout.trim()));
  const said = failureOf(result);
  const [, refused] = /refusing to create token: (.+)/.exec(said) ?? [];
  return refused === undefined
    ? fail("token", `k0s token create: ${said}`)
    : fail(NOT_JOINABLE, `nothing can join: k0s says ${refused}`);
}

/** PEM, as the API server shows it to callers; absent until k0s has made it. */
export async function readServerCertificate(host: Host): Promise<string | undefined> {
  const pem = await host.files.readText(`${K0S_DATA}/pki/server.crt`, { maxBytes: 64 * 1024 });
  return pem.ok ? pem.value : undefined;
}
