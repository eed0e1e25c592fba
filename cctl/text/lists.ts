/** The listings as text. Everything in them came from a node. */
import type {
  AuditLine,
  DiskAnswer,
  EventsLine,
  LogLine,
  OperationsAnswer,
  ServiceAnswer,
} from "../../api/contract.ts";
import type { Operation, Requester } from "../../state/model.ts";
import { bytes, printable, table } from "../printable.ts";

export const time = (atMs: number): string => new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z");

export function requesterText(requester: Requester): string {
  if (requester.kind !== "operator") return requester.kind;
  // Who claims has no certificate yet: the address is all there is.
  const who = requester.name === "" ? "somebody" : requester.name;
  return `${who} (${requester.role}, ${requester.address})`;
}

export function servicesText(services: readonly ServiceAnswer[]): string {
  const rows = services.map(({ unit, activeState, subState, restarts, isRestartable }) => [
    unit,
    `${activeState} (${subState})`,
    String(restarts),
    isRestartable ? "yes" : "no",
  ]);
  return table(["UNIT", "STATE", "RESTARTS", "RESTARTABLE"], rows);
}

export function disksText(disks: readonly DiskAnswer[]): string {
  const rows = disks.map((disk) => [
    disk.path,
    bytes(disk.sizeBytes),
    `${disk.bus} ${disk.type}`,
    disk.identity.model ?? "",
    disk.identity.serial ?? "",
    disk.usable ? "yes" : "no",
    disk.reason,
  ]);
  return table(["DISK", "SIZE", "KIND", "MODEL", "SERIAL", "USABLE", "WHY"], rows);
}

/** A failure has many lines, e.g. one per disk: below its row those of the newest operation, of others the first. */
export function operationsText({ operations }: OperationsAnswer): string {
  const [newest] = operations;
  const rows = operations.map((operation) => [
    operation.id,
    time(operation.createdAtMs),
    operation.kind,
    operation.phase,
    requesterText(operation.requester),
    (operation.failureReason ?? operation.message ?? "").split("\n", 1)[0] ?? "",
  ]);
  const [head, first, ...others] = table(["ID", "BEGAN", "KIND", "PHASE", "ASKED BY", ""], rows).split("\n");
  const details = (newest?.failureReason ?? "").split("\n").slice(1);
  return [head, first, ...details.map((line) => `  ${printable(line)}`), ...others].join("\n");
}

export function operationText(operation: Operation): string {
  const head: [string, string | undefined][] = [
    ["operation", operation.id],
    ["kind", operation.kind],
    ["phase", operation.phase],
    ["asked by", requesterText(operation.requester)],
    ["began", time(operation.createdAtMs)],
    ["ended", operation.endedAtMs === undefined ? undefined : time(operation.endedAtMs)],
    ["doing", operation.message],
    ["failed", operation.failureReason],
    ["version", operation.version],
  ];
  const lines = head.flatMap(([label, text]) =>
    text === undefined
      ? []
      : [`${label.padEnd(11)}${printable(text, "line-feeds").replaceAll("\n", `\n${" ".repeat(11)}`)}`],
  );
  const marks = { pending: " ", running: ">", done: "+", skipped: "=", failed: "!" } as const;
  for (const step of operation.steps) {
    const took =
      // A clock that was set back in between measures nothing.
      step.startedAtMs === undefined || step.endedAtMs === undefined || step.endedAtMs < step.startedAtMs
        ? ""
        : `  ${((step.endedAtMs - step.startedAtMs) / 1000).toFixed(1)} s`;
    lines.push(`  ${marks[step.state]} ${printable(step.title)}${took}`);
  }
  return `${lines.join("\n")}\n`;
}

export function eventLine({ seq, atMs, severity, kind, message }: EventsLine): string {
  return `${seq}  ${time(atMs)}  ${severity.padEnd(7)}  ${printable(kind)}  ${printable(message)}\n`;
}

export function auditLine({ seq, atMs, requester, route, status, outcome }: AuditLine): string {
  return `${seq}  ${time(atMs)}  ${status}  ${printable(route)}  ${printable(requesterText(requester))}  ${printable(outcome)}\n`;
}

export function logLine({ at, unit, message }: LogLine): string {
  return `${printable(at)}  ${printable(unit)}  ${printable(message)}\n`;
}
