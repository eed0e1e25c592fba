import type { UnitsStep } from "./model.ts";

export function unitsStep(step: Pick<UnitsStep, "id" | "title" | "files"> & Partial<UnitsStep>): UnitsStep {
  return { enable: [], start: [], ...step, kind: "systemd:units" };
}
