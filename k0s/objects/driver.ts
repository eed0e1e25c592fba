/** Asks the cluster, on a controller, for one object. */
import type { Host } from "../../kit/ports.ts";
import { type ChartStanding, chartRef, chartStanding } from "../charts.ts";
import { K0S_BINARY } from "../paths.ts";
import { type FoundObject, type ObjectRef, parseObject } from "./parse.ts";

const ASK_TIMEOUT_MS = 10_000;

export async function readObject(host: Host, ref: ObjectRef, timeoutMs = ASK_TIMEOUT_MS): Promise<FoundObject> {
  const { resource, namespace, name } = ref;
  const argv = [K0S_BINARY, "kubectl", "get", resource, name, "-n", namespace, "-o", "json"];
  return parseObject(ref, await host.exec({ argv, timeoutMs }));
}

/** By name. When one can't be told, the cluster is not asked for the others. */
export async function readChartStandings(
  host: Host,
  names: readonly string[],
): Promise<ReadonlyMap<string, ChartStanding>> {
  const standings = new Map<string, ChartStanding>();
  let unknown: ChartStanding | undefined;
  for (const name of names) {
    const standing = unknown ?? chartStanding(await readObject(host, chartRef(name)));
    if (standing.is === "unknown") unknown = standing;
    standings.set(name, standing);
  }
  return standings;
}
