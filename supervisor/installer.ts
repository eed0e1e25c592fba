/** What a person at the console, or an operator, may choose from on a live system; the plan of the installation decides. */
import type { AppError } from "../kit/app-error.ts";
import type { Disk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { Result } from "../kit/result.ts";
import type { InstallBlock } from "../config/with-install.ts";
import type { InstallOffers } from "../provision/install/offer.ts";
import type { BootstrapServices } from "./bootstrap-services.ts";
import { ok } from "../kit/result.ts";
import { resolveDevice } from "../disks/select.ts";
import { consentFor, offerDisks } from "../provision/install/offer.ts";
import { carriedArguments, planInstall } from "../provision/install/plan.ts";
import { readMarks } from "../provision/install/remains/driver.ts";
import { readFirmware, readImage } from "./install.ts";

export interface Judged {
  /** Errors: it would be refused. */
  readonly findings: readonly Finding[];
  /** Those that hold an installed Corium. */
  readonly givenUp: readonly Disk[];
}

export interface Installer {
  offers(): Promise<Result<InstallOffers, AppError>>;
  judge(install: InstallBlock, isOwnGivenUp: boolean): Promise<Result<Judged, AppError>>;
}

export function createInstaller(
  services: Pick<BootstrapServices, "host" | "state" | "version" | "boot" | "readInventory">,
): Installer {
  const { host, state, version } = services;
  const look = async () => {
    const image = await readImage(services);
    if (!image.ok) return image;
    const inventory = await services.readInventory();
    if (!inventory.ok) return inventory;
    const cmdline = await host.files.readText("/proc/cmdline", { maxBytes: 65_536 });
    return ok({
      inventory: inventory.value,
      image: image.value,
      version,
      args: carriedArguments(cmdline.ok ? cmdline.value : ""),
      intents: state.journal.intents(),
      marks: await readMarks(host, inventory.value),
      firmware: await readFirmware(host),
    });
  };
  return {
    async offers() {
      const seen = await look();
      return seen.ok ? ok(offerDisks(seen.value)) : seen;
    },
    async judge(install, isOwnGivenUp) {
      const seen = await look();
      if (!seen.ok) return seen;
      const { findings } = planInstall({
        ...seen.value,
        document: { install },
        documentSha256: "",
        uuid: () => host.random.uuid(),
        mayGiveUp: () => isOwnGivenUp,
      });
      const named = [install.disk, ...(install.mirror === undefined ? [] : [install.mirror])].flatMap((ref) => {
        const found = resolveDevice(ref, seen.value.inventory);
        return found.ok ? [found.value] : [];
      });
      return ok({ findings, givenUp: named.filter((disk) => consentFor(disk) === "wipe-own") });
    },
  };
}
