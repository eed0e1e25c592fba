/**
 * A machine in memory that behaves as a real one where it matters: files are durable only once they were written
 * through the Files port (or synced), power can fail at any call, /etc and /run are made anew at each boot, programs
 * are handlers that may be as stateful as the tool they stand for.
 *
 *     const fake = fakeHost({ files: { "/etc/hostname": "debian\n" }, programs: { mdadm: (request, fake) => … } });
 *     fake.dieAt(7, "before");     // the 7th call of any port throws MachineDied; so does each one after it
 *     fake.boot();                 // power comes back: what was not durable is gone
 */
import { appError } from "../../kit/app-error.ts";
import type { ExecRequest, ExecResult, Http } from "../../kit/ports.ts";
import { err } from "../../kit/result.ts";
import { Secret } from "../../kit/secret.ts";
import { countCalls, MachineDied } from "./fake-call.ts";
import { fakeFiles } from "./fake-files.ts";
import type { FakeHost, FakeHostOptions, FakeProgram } from "./fake-host-model.ts";
import { fakeSystemd } from "./fake-systemd.ts";

export { MachineDied };
export type { FakeHost, FakeHostOptions, FakeNode, FakeProgram, FakeUnit } from "./fake-host-model.ts";

export function fakeHost(options: FakeHostOptions = {}): FakeHost {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const calls = countCalls(options.onCall);
  const { call } = calls;
  let nowMs = options.nowMs ?? Date.UTC(2026, 0, 1);
  let monotonicMs = 1_000;
  let seed = 1;
  let http: Http =
    options.http ??
    (async (request) => err(appError("dns", `no address is known for ${new URL(request.url).hostname}`)));
  const programs = new Map<string, FakeProgram>(Object.entries(options.programs ?? {}));
  const disk = fakeFiles({
    call,
    image: options.files ?? {},
    keptEtc: options.keptEtc === undefined ? "/var/lib/corium/etc" : (options.keptEtc ?? undefined),
    nowMs: () => nowMs,
    ...(options.onWrite === undefined ? {} : { onWrite: options.onWrite }),
  });
  const units = fakeSystemd(options.units ?? {}, {
    call,
    hasFile: (path) => disk.node(path) !== undefined,
    host: () => fake,
    ...(options.newUnits === undefined ? {} : { newUnits: options.newUnits }),
  });

  async function exec(request: ExecRequest): Promise<ExecResult> {
    const base: ExecResult = {
      argv: request.argv,
      exitCode: 0,
      signal: null,
      stdout: "",
      stderr: "",
      timedOut: false,
      truncated: false,
      durationMs: 1,
    };
    const run = async (): Promise<ExecResult> => {
      const name = request.argv[0] ?? "";
      const program = programs.get(name) ?? programs.get(name.slice(name.lastIndexOf("/") + 1));
      if (program === undefined) return { ...base, exitCode: null, failure: "not-found" };
      const { stdin } = request;
      const stdinText =
        stdin instanceof Secret ? stdin.reveal() : stdin instanceof Uint8Array ? decoder.decode(stdin) : (stdin ?? "");
      const answer = await program({ ...request, stdinText }, fake);
      return typeof answer === "string" ? { ...base, stdout: answer } : { ...base, ...answer };
    };
    const failure = (): ExecResult => ({ ...base, exitCode: 1, stderr: `${request.argv[0]}: Input/output error\n` });
    return call(`exec ${request.argv.join(" ")}`, run, failure);
  }

  function boot(): void {
    calls.revive();
    monotonicMs = 1_000;
    disk.boot();
    units.boot();
  }

  const fake: FakeHost = {
    exec,
    files: disk.files,
    systemd: units.systemd,
    http: (request) =>
      call(
        `http ${request.url}`,
        () => http(request),
        () => err(appError("refused", "connection refused")),
      ),
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => monotonicMs,
      // Sleeping takes no time, it only makes it later; yields, so that what was waited for can happen.
      sleep: async (ms, signal) => {
        if (calls.isDead) throw new MachineDied("clock.sleep");
        if (signal?.aborted !== true) {
          nowMs += ms;
          monotonicMs += ms;
        }
        await new Promise((go) => setImmediate(go));
      },
    },
    random: {
      bytes: (count) => Uint8Array.from({ length: count }, () => (seed = (seed * 48_271) % 2_147_483_647) & 0xff),
      uuid: () => {
        const hex = Array.from({ length: 32 }, () =>
          ((seed = (seed * 48_271) % 2_147_483_647) & 0xf).toString(16),
        ).join("");
        return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
      },
    },
    calls: calls.names,
    text: disk.text,
    node: disk.node,
    paths: disk.paths,
    put: disk.put,
    drop: disk.drop,
    sync: disk.sync,
    unitTable: units.unitTable,
    programs,
    setHttp: (next) => {
      http = next;
    },
    setNow: (next) => {
      nowMs = next;
    },
    dieAt: (count, when = "before") => calls.fateAt(count, when),
    failAt: (count) => calls.fateAt(count, "fails"),
    get isTearing() {
      return calls.isTearing;
    },
    respawn: () => calls.revive(),
    boot,
    crash: boot,
  };
  return fake;
}
