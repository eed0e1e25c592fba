/** Steps of the node itself; the other domains have their own. Plain data, never a secret. */
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import type { StepBase } from "../kit/step.ts";
import type { Joining } from "./join/judge.ts";

/** Waits until the clock can be believed. */
export interface ClockStep extends StepBase {
  readonly kind: "node:clock";
}

/** Gets secrets from where the document says they are. */
export interface SecretsStep extends StepBase {
  readonly kind: "node:secrets";
  /** Field paths, e.g. `join.tokenFrom`. */
  readonly fields: readonly string[];
}

/** Asks the cluster whether it takes this node under its name. Changes nothing. */
export interface JoinStep extends StepBase {
  readonly kind: "node:join";
  /** Where the token stands among the secrets. */
  readonly tokenField: string;
  readonly joining: Joining;
}

export interface HostnameStep extends StepBase {
  readonly kind: "node:hostname";
  readonly hostname: string;
}

/** Removes what an earlier document of this first boot had written and this one does not want. */
export interface EarlierStep extends StepBase {
  readonly kind: "node:earlier";
  readonly files: readonly string[];
  /** Interfaces of those files. */
  readonly overlays: readonly string[];
  readonly timers: readonly string[];
  /** Lines of /etc/crypttab, by their mapping. */
  readonly mappings: readonly string[];
}

export interface TimersStep extends StepBase {
  readonly kind: "node:timers";
  readonly files: readonly RenderedFile[];
  /** Timer units to be enabled and started. */
  readonly units: readonly string[];
}

/** What the node runs from now on, recorded as facts. */
export interface BaselineStep extends StepBase {
  readonly kind: "node:baseline";
  readonly documentSha256: string;
  readonly hostname: string;
  readonly machineId: string;
  readonly addresses: RecordedAddresses;
  readonly k0sVersion: string;
  /** Paths of every rendered file; their digests are taken when it runs. */
  readonly rendered: readonly string[];
}

/** The last act: bootstrap is over. */
export interface MarkerStep extends StepBase {
  readonly kind: "node:marker";
  readonly path: string;
}

export type NodeStep =
  ClockStep | SecretsStep | JoinStep | HostnameStep | EarlierStep | TimersStep | BaselineStep | MarkerStep;
