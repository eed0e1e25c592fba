import type { RenderedFile } from "../kit/rendered.ts";
import type { StepBase } from "../kit/step.ts";

/** Units and drop-ins of ours: written, made known, enabled (and so kept over boots), and started where asked for. */
export interface UnitsStep extends StepBase {
  readonly kind: "systemd:units";
  readonly files: readonly RenderedFile[];
  /** Units to enable: timers, services, … */
  readonly enable: readonly string[];
  /** Of those, the ones to start at once. */
  readonly start: readonly string[];
}

export type SystemdStep = UnitsStep;
