import type { Document } from "../config/document.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { renderUnit } from "../systemd/render.ts";

export interface RenderedTimers {
  readonly files: readonly RenderedFile[];
  /** Timer units to be enabled and started. */
  readonly units: readonly string[];
}

const FOLDER = "/etc/systemd/system";
const COMMENT = "Written by corium from the node's document.";

/**
 * Upgrades come with a later release (docs/adr/0020-upgrade-timer.md). Until then the schedule is kept and the
 * service says, each time, that nothing was looked for: `<4>` is a warning in the journal.
 */
const UPGRADE_NOTICE = "<4>automatic upgrades are not in this release of corium: nothing was looked for";

export function renderTimers(document: Document): RenderedTimers {
  const { automatic, schedule } = document.upgrades;
  if (automatic === "none") return { files: [], units: [] };
  const service = renderUnit(COMMENT, [
    ["Unit", [["Description", `Corium upgrades (automatic: ${automatic})`]]],
    [
      "Service",
      [
        ["Type", "oneshot"],
        ["ExecStart", `/bin/echo "${UPGRADE_NOTICE}"`],
      ],
    ],
  ]);
  const timer = renderUnit(COMMENT, [
    ["Unit", [["Description", "Corium upgrades, as the document schedules them"]]],
    ["Timer", [["OnCalendar", schedule]]],
    ["Install", [["WantedBy", "timers.target"]]],
  ]);
  return {
    files: [
      { path: `${FOLDER}/corium-upgrade.service`, mode: 0o644, content: service },
      { path: `${FOLDER}/corium-upgrade.timer`, mode: 0o644, content: timer },
    ],
    units: ["corium-upgrade.timer"],
  };
}
