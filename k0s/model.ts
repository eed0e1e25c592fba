import type { RenderedFile } from "../kit/rendered.ts";
import type { StepBase } from "../kit/step.ts";
import type { K0sUnit } from "./paths.ts";

/** `k0s status -o json`, as far as it is believed. */
export interface K0sStatus {
  readonly version: string;
  readonly pid: number;
  /** From Role, Workloads and SingleNode together: Role alone says `controller` of three different nodes. */
  readonly role: "single" | "controller" | "controller+worker" | "worker";
  /** Has this node's kubelet reached an API server? Absent where there is no kubelet. */
  readonly isConnected?: boolean;
  /** Why not, in k0s's words. */
  readonly connectionMessage?: string;
}

/** How a unit file of `k0s install` starts k0s. */
export interface UnitCommand {
  readonly binary: string;
  readonly command: string;
  /** Without their dashes; the value is `true` for a switch. */
  readonly flags: ReadonlyMap<string, string>;
}

export interface ManifestsStep extends StepBase {
  readonly kind: "k0s:manifests";
  readonly files: readonly RenderedFile[];
}

export interface ConfigStep extends StepBase {
  readonly kind: "k0s:config";
  readonly file: RenderedFile;
}

export interface TokenStep extends StepBase {
  readonly kind: "k0s:token";
  readonly file: RenderedFile;
  readonly unit: K0sUnit;
}

export interface InstallStep extends StepBase {
  readonly kind: "k0s:install";
  readonly unit: K0sUnit;
  /** The arguments of k0s, from `install` on, without `--force`. */
  readonly argv: readonly string[];
  /** Drop-ins of ours for it, there before it is. */
  readonly files: readonly RenderedFile[];
}

export interface StartStep extends StepBase {
  readonly kind: "k0s:start";
  readonly unit: K0sUnit;
  readonly isJoining: boolean;
}

export interface ReadyStep extends StepBase {
  readonly kind: "k0s:ready";
  readonly unit: K0sUnit;
  /** By a token, which the cluster may refuse. */
  readonly isJoining: boolean;
}

export type K0sStep = ManifestsStep | ConfigStep | TokenStep | InstallStep | StartStep | ReadyStep;
