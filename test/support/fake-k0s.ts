/**
 * k0s as fakeHost knows programs: installs its unit as facts section 2.1 says, answers some probes after it was
 * started, and refuses or loops over a config when told to. The stand-in of the VM tests is another, larger thing.
 */
import { parse } from "yaml";
import type { ExecResult } from "../../kit/ports.ts";
import type { FakeHost, FakeProgram } from "./fake-host.ts";

export interface FakeK0s {
  readonly program: FakeProgram;
  /** Probes of `k0s status` that fail after a start before it answers. */
  slowness: number;
  /** Config that contains this makes the unit loop, as a bad flag of the API server would. */
  poison?: string;
  /** Config that contains this is refused by `k0s config validate`. */
  invalid?: string;
  /** Name of a chart whose release fails. */
  badChart?: string;
  /** Of etcd; by default the node is alone. Nodes of one cluster may share the object. */
  controlPlane: { members: readonly string[]; leader?: string };
  /** Charts whose object was deleted with kubectl. */
  readonly uninstalled: Set<string>;
  /** Objects of other kinds, by `RESOURCE NAMESPACE/NAME`; a resource that none is of is a kind the API does not know. */
  readonly objects: Map<string, object>;
  /** What every question to the API comes to, when set. */
  kubectlFails?: Partial<ExecResult>;
}

const failed = (stderr: string): Partial<ExecResult> => ({ exitCode: 1, stderr: `Error: ${stderr}\n` });

const CONFIG = "/etc/k0s/k0s.yaml";
const NOT_RUNNING = `status: can't get "status" via "/run/k0s/status.sock": Get "http://localhost/status": dial unix /run/k0s/status.sock: connect: no such file or directory`;

export function fakeK0s(more: { slowness?: number; poison?: string; invalid?: string } = {}): FakeK0s {
  let probes = 0;
  let startedPid = 0;
  const k0s: FakeK0s = {
    slowness: more.slowness ?? 1,
    controlPlane: { members: ["n1"], leader: "n1" },
    uninstalled: new Set(),
    objects: new Map(),
    ...(more.poison === undefined ? {} : { poison: more.poison }),
    ...(more.invalid === undefined ? {} : { invalid: more.invalid }),
    program: ({ argv }, fake) => {
      const [, command, ...args] = argv;
      if (command === "install") return install(args, fake);
      if (command === "config") return validate(args, fake);
      if (command === "version") return "v1.36.3+k0s.2\n";
      if (command === "status") return status(fake);
      if (command === "kubectl") return kubectl(args, fake);
      if (command === "etcd") return memberList(fake);
      return failed(`unknown command ${command}`);
    },
  };

  function running(fake: FakeHost): "controller" | "worker" | undefined {
    for (const role of ["controller", "worker"] as const) {
      const unit = fake.unitTable.get(`k0s${role}.service`);
      if (unit === undefined || unit.activeState !== "active") continue;
      if (k0s.poison !== undefined && fake.text(CONFIG)?.includes(k0s.poison) === true) {
        unit.restarts += 1;
        unit.journal = ["component=kube-apiserver unknown flag"];
        return undefined;
      }
      return role;
    }
    return undefined;
  }

  function memberList(fake: FakeHost): string | Partial<ExecResult> {
    if (running(fake) === undefined) return failed(NOT_RUNNING);
    const { members } = k0s.controlPlane;
    return `${JSON.stringify({ members: Object.fromEntries(members.map((name) => [name, `https://${name}:2380`])) })}\n`;
  }

  /** As k0s keeps them: the run of k0s that leads holds the second kind too. */
  function leases(): string {
    const { members, leader } = k0s.controlPlane;
    const lease = (name: string, holder: string): object => ({
      metadata: { name, namespace: "kube-node-lease" },
      spec: { holderIdentity: holder, leaseDurationSeconds: 60 },
    });
    const items = members.map((name) => lease(`k0s-ctrl-${name}`, `run-of-${name}`));
    const leading = leader === undefined ? [] : [lease("k0s-endpoint-reconciler", `run-of-${leader}`)];
    return JSON.stringify({ kind: "List", items: [...items, ...leading] });
  }

  /** Releases are there as soon as the API is; their revision is the count of starts that saw them change. */
  const releases = new Map<string, { text: string; revision: number }>();
  function kubectl(args: readonly string[], fake: FakeHost): string | Partial<ExecResult> {
    if (running(fake) === undefined) return failed("connection refused");
    if (args.includes("--raw")) return "ok";
    if (k0s.kubectlFails !== undefined) return k0s.kubectlFails;
    if (args.includes("leases")) return leases();
    const [, resource = "", name = "", , namespace = ""] = args;
    if (resource !== "charts.helm.k0sproject.io") return object(resource, `${namespace}/${name}`);
    const config = parse(fake.text(CONFIG) ?? "{}") as {
      spec?: { extensions?: { helm?: { charts?: { name: string }[] } } };
    };
    const charts = (config.spec?.extensions?.helm?.charts ?? []).filter((chart) => !k0s.uninstalled.has(chart.name));
    const items = charts.map((chart) => {
      const known = releases.get(chart.name) ?? { text: "", revision: 0 };
      const text = JSON.stringify(chart);
      const isBad = chart.name === k0s.badChart;
      const revision = known.text === text || isBad ? known.revision : known.revision + 1;
      releases.set(chart.name, { text, revision });
      const status = { revision, updated: String(revision), error: isBad ? "can't locate chart" : "" };
      return { metadata: { name: `k0s-addon-chart-${chart.name}` }, status };
    });
    if (name.startsWith("-")) return JSON.stringify({ kind: "List", items });
    const one = items.find((item) => item.metadata.name === name);
    return one === undefined ? notFound(resource, name) : JSON.stringify(one);
  }

  const notFound = (resource: string, name: string): Partial<ExecResult> => ({
    exitCode: 1,
    stderr: `Error from server (NotFound): ${resource} "${name}" not found\n`,
  });

  function object(resource: string, at: string): string | Partial<ExecResult> {
    if (![...k0s.objects.keys()].some((key) => key.startsWith(`${resource} `))) {
      const [kind] = resource.split(".");
      return { exitCode: 1, stderr: `error: the server doesn't have a resource type "${kind}"\n` };
    }
    const found = k0s.objects.get(`${resource} ${at}`);
    return found === undefined ? notFound(resource, at.split("/")[1] ?? "") : JSON.stringify(found);
  }

  function install(args: readonly string[], fake: FakeHost): string | Partial<ExecResult> {
    const [role = "", ...flags] = args.filter((arg) => arg !== "--force");
    const file = `/etc/systemd/system/k0s${role}.service`;
    if (fake.text(file) !== undefined && !args.includes("--force")) {
      return failed(`failed to install ${role} service: failed to install service: Init already exists: ${file}`);
    }
    const written: string[] = [];
    for (let at = 0; at < flags.length; at += 1) {
      const flag = flags[at] ?? "";
      if (["--single", "--enable-worker", "--no-taints"].includes(flag)) written.push(`${flag}=true`);
      else written.push(`${flag}=${flags[(at += 1)] ?? ""}`.replaceAll(" ", "\\x20"));
    }
    const command = ["/usr/bin/k0s", role, ...written.toSorted()].join(" ");
    fake.put(file, `[Service]\nExecStart=${command}\nRestart=always\n\n[Install]\nWantedBy=multi-user.target\n`);
    fake.put(`/etc/systemd/system/multi-user.target.wants/k0s${role}.service`, "", { kind: "symlink", target: file });
    fake.unitTable.delete(`k0s${role}.service`);
    fake.unitTable.set(`k0s${role}.service`, {
      activeState: "inactive",
      subState: "dead",
      loadState: "loaded",
      isEnabled: true,
      restarts: 0,
      result: "success",
      mainPid: 0,
      journal: [],
    });
    return "";
  }

  function validate(args: readonly string[], fake: FakeHost): string | Partial<ExecResult> {
    const text = fake.text(args.at(-1) ?? "") ?? "";
    parse(text, { version: "1.1" });
    if (text.includes("<secret:")) return failed("a placeholder was left in the config");
    return k0s.invalid !== undefined && text.includes(k0s.invalid)
      ? failed(`spec: ${k0s.invalid} is not supported\nanother problem`)
      : "";
  }

  function status(fake: FakeHost): string | Partial<ExecResult> {
    const role = running(fake);
    if (role === undefined) return failed(NOT_RUNNING);
    const unit = fake.unitTable.get(`k0s${role}.service`);
    if (unit?.mainPid !== startedPid) [startedPid, probes] = [unit?.mainPid ?? 0, 0];
    probes += 1;
    if (probes <= k0s.slowness) return failed(NOT_RUNNING);
    return JSON.stringify({
      Version: "v1.36.3+k0s.2",
      Pid: startedPid,
      PPid: 1,
      Role: role,
      Workloads: role === "worker",
      SingleNode: false,
      Args: [],
      WorkerToAPIConnectionStatus: { Message: "", Success: true },
      ClusterConfig: null,
    });
  }
  return k0s;
}
