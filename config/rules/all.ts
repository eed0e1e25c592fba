import { checkApi } from "./api.ts";
import { checkBackup, checkHa, checkStorage, checkUpgrades } from "./control-plane.ts";
import { checkJoin } from "./join.ts";
import { checkHandover, checkRanges } from "./network.ts";
import { checkNode } from "./node.ts";
import { checkRole } from "./role.ts";
import type { Rule } from "./rule.ts";
import { checkClaims, checkLuks, checkMounts, checkRaid, checkStorageNames } from "./storage.ts";
import { checkWireguard } from "./wireguard.ts";
import { checkAddons, checkManifests, checkPatch } from "./workloads.ts";

export const RULES: readonly Rule[] = [
  checkRole,
  checkRanges,
  checkHandover,
  checkHa,
  checkStorage,
  checkBackup,
  checkUpgrades,
  checkJoin,
  checkApi,
  checkNode,
  checkAddons,
  checkManifests,
  checkPatch,
  checkStorageNames,
  checkRaid,
  checkLuks,
  checkClaims,
  checkMounts,
  checkWireguard,
];
