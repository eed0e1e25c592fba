import { parseCidr, parseIp } from "../ip.ts";
import { ruleSays } from "../messages/rules.ts";
import { checkExclusive, checkSource, type RuleContext } from "./rule.ts";

const HA_FIELDS = ["virtualIP", "interface", "virtualRouterID", "unicastPeers", "authPass", "authPassFrom"];

/** One address for several controllers. */
export function checkHa(context: RuleContext): void {
  const { ha, role, cluster } = context.draft;
  if (ha === undefined) return;
  checkSource(context, ["ha", "authPassFrom"], ha.authPassFrom);
  if (!context.isSound(["ha", "enabled"])) return;
  const given = HA_FIELDS.filter((field) => context.given(["ha", field]));
  if (ha.enabled !== true) {
    for (const field of given) context.report(["ha", field], ruleSays.notEnabled("ha", field));
    return;
  }
  if (role === "single" || role === "worker") context.report(["ha", "enabled"], ruleSays.haRole(role));
  if (!context.given(["cluster", "endpoint"]) && context.isSound(["cluster"])) {
    context.report(["cluster", "endpoint"], ruleSays.haNeeds("cluster.endpoint", "the HA address, or a name for it"));
  }
  if (!given.includes("virtualIP")) {
    context.report(["ha", "virtualIP"], ruleSays.haNeeds("a virtual address", "e.g. virtualIP: 192.0.2.100/24"));
  }
  if (checkExclusive(context, ["ha"], "authPass", "authPassFrom")) {
    if (!given.includes("authPass") && !given.includes("authPassFrom")) {
      context.report(["ha", "authPass"], ruleSays.secretMissing("authPass", "authPassFrom"));
    }
  }
  checkEndpoint(context, cluster?.endpoint, ha.virtualIP);
}

function checkEndpoint(context: RuleContext, endpoint: string | undefined, virtualIP: string | undefined): void {
  const address = virtualIP === undefined ? undefined : parseCidr(virtualIP)?.ip;
  const ip = endpoint === undefined ? undefined : parseIp(endpoint);
  if (endpoint === undefined || virtualIP === undefined || ip === undefined || address === undefined) return;
  if (ip.family !== address.family || ip.value !== address.value) {
    context.report(["cluster", "endpoint"], ruleSays.haEndpoint(endpoint, virtualIP));
  }
}

/** A file store belongs to one controller, for ever. */
export function checkStorage(context: RuleContext): void {
  const { storage, role, ha } = context.draft;
  if (storage?.type !== "sqlite") return;
  const path = ["storage", "type"];
  const joins = Object.keys(context.draft.join ?? {}).length > 0;
  if (role === "controller") context.report(path, ruleSays.sqliteController());
  else if (role === "controller+worker" && joins) context.report(path, ruleSays.sqliteJoin());
  // HA refused for its role is not compared with storage.
  else if (ha?.enabled === true && role !== "single" && role !== "worker") context.report(path, ruleSays.sqliteHa());
}

const BACKUP_FIELDS = ["schedule", "path", "keep"];

export function checkBackup(context: RuleContext): void {
  const { backup, role } = context.draft;
  if (backup === undefined || !context.isSound(["backup", "enabled"])) return;
  if (backup.enabled === true) {
    if (role === "worker") context.report(["backup"], ruleSays.notOnWorker("backup"));
    return;
  }
  for (const field of BACKUP_FIELDS.filter((name) => context.given(["backup", name]))) {
    if (field === "schedule" && backup.schedule === "daily") continue;
    context.report(["backup", field], ruleSays.notEnabled("backup", field));
  }
}

/** A schedule that spells out the default is the same as none. */
export function checkUpgrades(context: RuleContext): void {
  const { upgrades } = context.draft;
  if (upgrades === undefined || !context.isSound(["upgrades", "automatic"])) return;
  const isOff = (upgrades.automatic ?? "none") === "none";
  if (isOff && context.given(["upgrades", "schedule"]) && upgrades.schedule !== "daily") {
    context.report(["upgrades", "schedule"], ruleSays.scheduleWithoutMode());
  }
}
