import { appError } from "../kit/app-error.ts";
import type { ExecRequest, Host } from "../kit/ports.ts";
import { err, ok } from "../kit/result.ts";

/** One thing that would have been done. Contents are not repeated: they may hold secrets. */
export interface DryAction {
  readonly kind: "exec" | "write" | "remove" | "rename" | "mkdir" | "symlink" | "keep" | "systemd" | "fetch";
  readonly what: string;
}

export interface DryOptions {
  /** Programs that only look may run. */
  readonly isReading: (request: ExecRequest) => boolean;
  readonly onAction: (action: DryAction) => void;
}

/** The same steps on a host that reads but changes nothing: a dry run is another host, never an `if`. */
export function dryHost(host: Host, options: DryOptions): Host {
  const say = (kind: DryAction["kind"], what: string): void => options.onAction({ kind, what });
  const done = async (kind: DryAction["kind"], what: string): Promise<{ ok: true; value: undefined }> => {
    say(kind, what);
    return ok(undefined);
  };
  return {
    clock: { ...host.clock, sleep: async () => {} },
    random: host.random,
    async exec(request) {
      if (options.isReading(request)) return host.exec(request);
      say("exec", request.argv.join(" "));
      const nothing = { exitCode: 0, signal: null, stdout: "", stderr: "", timedOut: false, truncated: false };
      return { argv: request.argv, durationMs: 0, ...nothing };
    },
    async http(request) {
      say("fetch", request.url);
      return err(appError("dry-run", `${request.url} is not fetched in a dry run`));
    },
    files: {
      ...host.files,
      write: (path) => done("write", path),
      remove: (path) => done("remove", path),
      rename: (from, to) => done("rename", `${from} ${to}`),
      mkdir: (path) => done("mkdir", path),
      symlink: (target, path) => done("symlink", `${path} -> ${target}`),
      keep: (path) => done("keep", path),
    },
    systemd: {
      ...host.systemd,
      daemonReload: () => done("systemd", "daemon-reload"),
      start: (unit) => done("systemd", `start ${unit}`),
      stop: (unit) => done("systemd", `stop ${unit}`),
      restart: (unit) => done("systemd", `restart ${unit}`),
      enable: (unit) => done("systemd", `enable ${unit}`),
      disable: (unit) => done("systemd", `disable ${unit}`),
      resetFailed: (unit) => done("systemd", `reset-failed ${unit}`),
    },
  };
}
