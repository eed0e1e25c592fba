/** What `corium serve` is told by its arguments, and what it refuses to be told by its environment. */
import { nodePaths, type Paths } from "../kit/paths.ts";
import { API_PORT } from "./contract.ts";

/** Each of them changes what TLS, the runtime or the loader do, behind the back of all that is checked here. */
const FORBIDDEN_ENVIRONMENT = /^(NODE_TLS_REJECT_UNAUTHORIZED|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|SSLKEYLOGFILE|BUN_.*)$/;

export const forbiddenIn = (environment: Readonly<Record<string, string | undefined>>): readonly string[] =>
  Object.keys(environment).filter((name) => FORBIDDEN_ENVIRONMENT.test(name));

export interface ServeOptions {
  readonly paths: Paths;
  readonly port: number;
  readonly address?: string;
  /** The node's own place: kept parts of /etc are mirrored. */
  readonly isNode: boolean;
}

/** Undefined: wrong usage. */
export function parseOptions(argv: readonly string[]): ServeOptions | undefined {
  let stateDir: string | undefined;
  let runDir: string | undefined;
  let address: string | undefined;
  let port = API_PORT;
  for (let at = 0; at < argv.length; at += 2) {
    const value = argv[at + 1];
    if (value === undefined) return undefined;
    if (argv[at] === "--state-dir") stateDir = value;
    else if (argv[at] === "--run-dir") runDir = value;
    else if (argv[at] === "--address") address = value;
    else if (argv[at] === "--port") port = Number(value);
    else return undefined;
  }
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return undefined;
  return {
    // One --state-dir roots everything: also what is volatile, and source 1.
    paths:
      stateDir === undefined
        ? nodePaths(undefined, runDir)
        : { ...nodePaths(stateDir, runDir ?? `${stateDir}/run`), config: `${stateDir}/config.yaml` },
    port,
    ...(address === undefined ? {} : { address }),
    isNode: stateDir === undefined,
  };
}
