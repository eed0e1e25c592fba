/** A node seen from inside, through the root shell of a test image: what it keeps, and when it was written. */
import type { Shell } from "./shell.ts";

/**
 * Every file and folder that an apply could touch, with mode, size, times and content's hash. A file that was replaced by
 * an equal one shows too: by its own times, and by its folder's.
 */
export const keptFiles = (shell: Shell): Promise<string> =>
  shell.must(
    `for each in /etc/hostname /etc/hosts /etc/corium /etc/k0s /etc/systemd /etc/mdadm /var/lib/k0s/manifests \\
       /var/lib/corium/etc /var/lib/corium/undo; do
       [ -e $each ] && find $each -printf '%p %y %m %s %T@ %C@\\n'
     done | sort`,
  );

/** Path and SHA-256 of each file below /etc that is kept: of the copy on the state partition as well. */
export const contentOfFiles = (shell: Shell): Promise<string> =>
  shell.must(
    `find /etc/corium /etc/k0s /etc/systemd/system /etc/mdadm/mdadm.conf.d /var/lib/corium/etc -type f \\
       -not -path '*/sim-faults/*' -exec sha256sum {} + | sort -k 2`,
  );

export interface UnitRun {
  readonly activeState: string;
  readonly mainPid: number;
  /** Since boot; the same as long as nobody restarts it. */
  readonly startedAtUs: number;
  readonly restarts: number;
}

export async function unitRun(shell: Shell, unit: string): Promise<UnitRun> {
  const text = await shell.must(
    `systemctl show ${unit} -p ActiveState -p MainPID -p NRestarts -p ExecMainStartTimestampMonotonic`,
  );
  const values = new Map(text.split("\n").map((line) => [line.split("=")[0], line.slice(line.indexOf("=") + 1)]));
  return {
    activeState: values.get("ActiveState") ?? "",
    mainPid: Number(values.get("MainPID")),
    startedAtUs: Number(values.get("ExecMainStartTimestampMonotonic")),
    restarts: Number(values.get("NRestarts")),
  };
}

export interface Kept {
  readonly documents: readonly { readonly id: number; readonly sha256: string; readonly origin: string }[];
  readonly baseline: { readonly document_id: number; readonly input_hash: string; readonly at_ms: number } | null;
  readonly journal: readonly { readonly step_id: string; readonly is_closed: number }[];
  readonly owned: readonly { readonly kind: string; readonly name: string; readonly uuid: string }[];
  /** Rows of the append-only table that tell of operations. */
  readonly operationEntries: number;
}

const QUERY = `
import { Database } from "bun:sqlite";
const db = new Database("/var/lib/corium/corium.db", { readonly: true });
console.log(JSON.stringify({
  documents: db.query("SELECT id, sha256, origin FROM documents ORDER BY id").all(),
  baseline: db.query("SELECT document_id, input_hash, at_ms FROM baseline").get(),
  journal: db.query("SELECT step_id, closed_at_ms IS NOT NULL AS is_closed FROM journal ORDER BY step_id").all(),
  owned: db.query("SELECT kind, name, uuid FROM owned ORDER BY kind, name").all(),
  operationEntries: db.query("SELECT count(*) AS n FROM entries WHERE stream = 'operation'").get().n,
}));
`;

/** Rows of the database. The image has no sqlite3, but corium is a runtime as well. */
export async function readDatabase(shell: Shell): Promise<Kept> {
  const text = await shell.must(
    `cat >/run/.query.js <<'END'
${QUERY}
END
BUN_BE_BUN=1 /usr/bin/corium --config=/dev/null run --no-install --no-env-file /run/.query.js`,
  );
  return JSON.parse(text) as Kept;
}

/**
 * As if a time server had answered (systemd-timesyncd(8)): a site has one, the machines of the tests have none, and each
 * first boot would wait its two minutes. Until then bootstrap waits before it changes anything.
 */
export const synchronizeClock = (shell: Shell): Promise<string> =>
  shell.must(
    `until systemctl is-active -q systemd-timesyncd; do sleep 0.2; done
     touch /run/systemd/timesync/synchronized`,
    300_000,
  );

/** Switches a fault of the stand-in on (k0s-sim/stand-in.ts); a reboot switches it off: it is not kept. */
export const setFault = (shell: Shell, fault: string, content = ""): Promise<string> =>
  shell.must(`mkdir -p /etc/k0s/sim-faults && printf %s '${content}' >/etc/k0s/sim-faults/${fault}`);
