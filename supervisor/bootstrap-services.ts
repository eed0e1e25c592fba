/** What a first boot needs of the world; the composition root fills it with the real things, tests with others. */
import type { FoundSource, Source } from "../config/source.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Inventory } from "../kit/disk.ts";
import type { BootFacts, Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Executors } from "../kit/step.ts";
import type { CarryOver } from "../provision/install/driver.ts";
import type { InstallStep } from "../provision/install/model.ts";
import type { ProvisionStep } from "../provision/plan.ts";
import type { NodePorts } from "../provision/steps.ts";
import type { State } from "../state/open.ts";
import type { Reporter } from "./reporter.ts";

export type FoundDocument = FoundSource;

export interface BootstrapServices {
  readonly host: Host;
  readonly state: State;
  readonly paths: Paths;
  readonly version: string;
  readonly boot: BootFacts;
  /** `/proc/cmdline`. */
  readonly cmdline: string;
  readonly reporter: Reporter;
  readonly findDocument: () => Promise<Source>;
  readonly readInventory: () => Promise<Result<Inventory, AppError>>;
  readonly executors: (ports: NodePorts) => Executors<ProvisionStep>;
  readonly installExecutors: (carryOver: CarryOver) => Executors<InstallStep>;
  readonly signal?: AbortSignal;
}
