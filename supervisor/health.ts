/** What the node's parts say of its health: a check for each of them, and the verdict over all. Pure. */
import type { NodeAnswer } from "../api/contract.ts";
import type { BootstrapStatus } from "./bootstrap-status.ts";

type Check = NodeAnswer["health"]["checks"][number];

export interface Judged {
  readonly problems: readonly string[];
  readonly isInService: boolean;
  readonly bootstrap: BootstrapStatus["state"];
  readonly kubernetes: NodeAnswer["kubernetes"];
  /** What could not be read in time: nothing good is said of it. */
  readonly unread: readonly string[];
  readonly arrays: NodeAnswer["storage"]["arrays"];
  readonly mounts: NodeAnswer["storage"]["mounts"];
  readonly volumes: NonNullable<NodeAnswer["storage"]["volumes"]>;
  readonly overlay: NodeAnswer["overlay"];
  readonly ha: NodeAnswer["ha"];
  /** Addresses that the node was bootstrapped with and does not have. */
  readonly gone: readonly string[];
  /** That the cluster does not know this node any more, since when, and the way back. */
  readonly lost: string | undefined;
  /** Certificates that have ended, in sentences. */
  readonly ended: readonly string[];
}

/** Arrays that work without all of their members, or are busy getting there. */
const WORKING = new Set(["healthy", "checking", "resyncing", "reshaping"]);
const LOST = new Set(["failed", "inactive", "missing"]);

export function judgeHealth(found: Judged): readonly Check[] {
  const checks: Check[] = [
    {
      name: "state",
      ok: found.problems.length === 0,
      ...(found.problems.length === 0 ? {} : { message: found.problems.join("; ") }),
    },
  ];
  if (found.bootstrap === "failed" && !found.isInService) {
    checks.push({ name: "bootstrap", ok: false, message: "failed; `cctl operations` says why, `cctl retry` goes on" });
  }
  if (found.isInService) {
    const { kubernetes } = found;
    const isActive = kubernetes?.active === true;
    const waits = [...found.gone, ...found.overlay.filter(({ up }) => !up).map(({ name }) => `overlay ${name}`)];
    const why = waits.length === 0 ? "" : `: it is not started without ${waits.join(" and ")}`;
    checks.push({
      name: "k0s",
      ok: isActive,
      ...(isActive
        ? {}
        : { message: kubernetes === undefined ? "could not be asked" : `${kubernetes.service} is not active${why}` }),
    });
    const said = kubernetes?.nodeMessage;
    if (kubernetes?.nodeReady !== true && said !== undefined) {
      const what = kubernetes?.nodeReady === false ? "Kubernetes says not ready" : "whether it is ready is not known";
      checks.push({ name: "node", ok: false, message: `${what}: ${said}` });
    }
  }
  for (const name of found.unread) checks.push({ name, ok: false, message: "could not be read" });
  for (const array of found.arrays) {
    const isFine = WORKING.has(array.state);
    const message = `${array.state}, ${array.active} of ${array.expected} members`;
    checks.push({ name: `array ${array.name}`, ok: isFine, ...(isFine ? {} : { message }) });
  }
  if (!found.isInService) return checks;
  if (found.gone.length > 0) {
    const message = `this node entered service with ${found.gone.join(", ")} and does not have it: k0s is not started without; give it back to the machine (a fixed address, or a reservation), or reset the node`;
    checks.push({ name: "address", ok: false, message });
  }
  if (found.lost !== undefined) checks.push({ name: "cluster", ok: false, message: found.lost });
  if (found.ended.length > 0) checks.push({ name: "certificates", ok: false, message: found.ended.join("; ") });
  for (const { name, state } of found.volumes) {
    const isOpen = state === "open";
    const message =
      state === "locked"
        ? `locked; \`cctl luks unlock NODE ${name}\` opens it`
        : "the device that it lies on is missing";
    checks.push({ name: `volume ${name}`, ok: isOpen, ...(isOpen ? {} : { message }) });
  }
  for (const { path, mounted } of found.mounts) {
    checks.push({ name: `mount ${path}`, ok: mounted, ...(mounted ? {} : { message: "not mounted" }) });
  }
  for (const { name, up } of found.overlay) {
    checks.push({ name: `overlay ${name}`, ok: up, ...(up ? {} : { message: "down" }) });
  }
  if (found.ha?.state !== undefined) {
    const problem = problemOf(found.ha);
    checks.push({ name: "virtual address", ok: problem === undefined, ...(problem && { message: problem }) });
  }
  return checks;
}

function problemOf({ vip, holder, others = [], state }: NonNullable<NodeAnswer["ha"]>): string | undefined {
  if (state === "unheld") return `nobody answers for ${vip}`;
  if (state !== "contested") return undefined;
  return `${vip} has more than one holder: ${[...(holder === true ? ["this node"] : []), ...others].join(" and ")}`;
}

export function verdictOf(checks: readonly Check[]): NodeAnswer["health"]["verdict"] {
  const failed = checks.filter(({ ok }) => !ok);
  if (failed.length === 0) return "healthy";
  const isLost = failed.some(
    ({ name, message }) => name === "k0s" || name === "state" || LOST.has(message?.split(",")[0] ?? ""),
  );
  return isLost ? "unhealthy" : "degraded";
}
