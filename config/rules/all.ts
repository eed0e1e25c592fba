import { checkAddons, checkRepositories } from "./addons.ts";
import { checkApi } from "./api.ts";
import { checkBackup } from "./backup.ts";
import { checkClaims } from "./claims.ts";
import { checkDisks } from "./disks.ts";
import { checkHa } from "./ha.ts";
import { checkHandover } from "./handover.ts";
import { checkJoin } from "./join.ts";
import { checkPatch } from "./k0s.ts";
import { checkVersion } from "./kubernetes.ts";
import { checkLuks } from "./luks.ts";
import { checkManifests } from "./manifests.ts";
import { checkMounts } from "./mounts.ts";
import { checkLabels, checkTaints } from "./node.ts";
import { checkRaid } from "./raid.ts";
import { checkRanges, checkVirtualIp } from "./ranges.ts";
import { checkRole } from "./role.ts";
import type { Rule } from "./rule.ts";
import { checkStorage } from "./storage.ts";
import { checkUpgrades } from "./upgrades.ts";
import { checkWireguard } from "./wireguard.ts";
import { checkZfs } from "./zfs.ts";

/** Their order is that of findings at the same place. */
export const RULES: readonly Rule[] = [
  checkRole,
  checkRanges,
  checkVirtualIp,
  checkHandover,
  checkHa,
  checkStorage,
  checkBackup,
  checkUpgrades,
  checkJoin,
  checkApi,
  checkLabels,
  checkTaints,
  checkAddons,
  checkRepositories,
  checkManifests,
  checkPatch,
  checkVersion,
  checkDisks,
  checkRaid,
  checkLuks,
  checkZfs,
  checkClaims,
  checkMounts,
  checkWireguard,
];
