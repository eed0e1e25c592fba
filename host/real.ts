import type { Host } from "../kit/ports.ts";
import { realClock } from "./clock.ts";
import { realExec } from "./exec.ts";
import { realFiles } from "./files.ts";
import { realHttp } from "./http.ts";
import { realRandom } from "./random.ts";
import { realSystemd } from "./systemd.ts";

/** Where the initramfs puts what differs from the image's /etc. */
const ETC_UPPER = "/run/corium/etc/upper";

export interface RealHostOptions {
  /** On a node that boots from disk: where the kept part of /etc is (`paths.keptEtc`). */
  readonly keptEtc?: string;
  /** `PATH` of the programs. */
  readonly path?: string;
}

export function realHost(options: RealHostOptions = {}): Host {
  const exec = realExec(options.path === undefined ? {} : { path: options.path });
  const files = realFiles(options.keptEtc === undefined ? {} : { keptEtc: options.keptEtc, etcUpper: ETC_UPPER });
  return { exec, files, http: realHttp, clock: realClock, random: realRandom, systemd: realSystemd(exec, files) };
}
