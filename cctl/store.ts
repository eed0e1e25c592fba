/**
 * What the operator's machine keeps: the CA and its key, one client certificate, and the fingerprint of each
 * enrolled node. One folder, 0700; keys 0600.
 */
import { parseDocument, stringify } from "yaml";
import { type AppError, appError, fail } from "../kit/app-error.ts";
import type { Clock, Files, WriteOptions } from "../kit/ports.ts";
import { type Result, ok } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import { API_PORT } from "../api/contract.ts";
import { type NodeAddress, formatAddress, parseAddress } from "./address.ts";

export interface PinnedNode {
  /** `host:port`, as formatAddress writes it. */
  readonly address: string;
  readonly fingerprint: string;
  readonly name?: string;
}

export interface Target {
  readonly address: NodeAddress;
  readonly pinned?: PinnedNode;
}

export const storeFiles = {
  ca: "operator-ca.pem",
  caKey: "operator-ca.key",
  certificate: "client.crt",
  key: "client.key",
  config: "config.yaml",
} as const;

export interface Store {
  readonly dir: string;
  readonly path: (file: keyof typeof storeFiles) => string;
  /** Absent files are `undefined`. */
  readonly readText: (file: keyof typeof storeFiles) => Promise<Result<string | undefined, AppError>>;
  /** Refuses a key that other users of the machine may read. */
  readonly readKey: (file: "caKey" | "key") => Promise<Result<Secret | undefined, AppError>>;
  readonly write: (
    file: keyof typeof storeFiles,
    content: string,
    options?: Pick<WriteOptions, "isNew">,
  ) => Promise<Result<void, AppError>>;
  readonly nodes: () => Promise<Result<readonly PinnedNode[], AppError>>;
  /** Replaces what was known under that address; one cctl at a time, so that none loses what another pinned. */
  readonly pin: (node: PinnedNode, clock: Pick<Clock, "sleep">) => Promise<Result<void, AppError>>;
  /** An address, or the name of an enrolled node. */
  readonly resolve: (text: string) => Promise<Result<Target, AppError>>;
}

export function openStore(files: Files, dir: string): Store {
  const path = (file: keyof typeof storeFiles): string => `${dir}/${storeFiles[file]}`;
  const readText: Store["readText"] = async (file) => {
    const read = await files.readText(path(file));
    if (!read.ok && read.error.code === "ENOENT") return ok(undefined);
    return read;
  };
  const write: Store["write"] = async (file, content, options) => {
    const made = await files.mkdir(dir, { mode: 0o700 });
    if (!made.ok) return made;
    const isSecret = file === "caKey" || file === "key";
    return files.write(path(file), content, { mode: isSecret ? 0o600 : 0o644, ...options });
  };
  const nodes: Store["nodes"] = async () => {
    const text = await readText("config");
    if (!text.ok) return text;
    return text.value === undefined ? ok([]) : parseNodes(text.value, path("config"));
  };
  return {
    dir,
    path,
    readText,
    write,
    nodes,
    async readKey(file) {
      const stat = await files.stat(path(file));
      if (!stat.ok) return stat;
      if (stat.value === null) return ok(undefined);
      if ((stat.value.mode & 0o077) !== 0) {
        return fail("store", `${path(file)} may be read by others`, { hint: `chmod 600 ${path(file)}` });
      }
      const text = await files.readText(path(file));
      return text.ok ? ok(new Secret(storeFiles[file], text.value)) : text;
    },
    async pin(node, clock) {
      const made = await files.mkdir(dir, { mode: 0o700 });
      if (!made.ok) return made;
      const lock = `${path("config")}.lock`;
      const taken = await takeLock(files, lock, clock);
      if (!taken.ok) return taken;
      try {
        const known = await nodes();
        if (!known.ok) return known;
        const others = known.value.filter(({ address }) => address !== node.address);
        const all = [...others, node].sort((a, b) => (a.address < b.address ? -1 : 1));
        return await write("config", formatNodes(all));
      } finally {
        await files.remove(lock);
      }
    },
    async resolve(text) {
      const known = await nodes();
      if (!known.ok) return known;
      const named = known.value.filter(({ name }) => name !== undefined && name === text);
      if (named.length > 1) {
        return fail("usage", `${named.length} nodes are called '${text}'`, {
          details: named.map(({ address }) => address),
          hint: "give the address",
        });
      }
      const parsed = parseAddress(named[0]?.address ?? text, API_PORT);
      if (!parsed.ok) return { ok: false, error: appError("usage", parsed.error) };
      const key = formatAddress(parsed.value);
      const pinned = known.value.find(({ address }) => address === key);
      return ok({ address: parsed.value, ...(pinned === undefined ? {} : { pinned }) });
    },
  };
}

/** Held for as long as it takes to write one small file. */
async function takeLock(files: Files, path: string, clock: Pick<Clock, "sleep">): Promise<Result<void, AppError>> {
  for (let tries = 0; tries < 100; tries += 1) {
    const taken = await files.write(path, "", { mode: 0o600, isNew: true });
    if (taken.ok || taken.error.code !== "EEXIST") return taken;
    await clock.sleep(100);
  }
  return fail("store", `another cctl holds ${path}`, { hint: "if none runs, one was killed: remove that file" });
}

function parseNodes(text: string, file: string): Result<readonly PinnedNode[], AppError> {
  const damaged = (reason: string): Result<never, AppError> =>
    fail("store", `${file} can't be read: ${reason}`, { hint: "repair it, or move it away and enroll again" });
  const document = parseDocument(text, { strict: true });
  if (document.errors[0] !== undefined) return damaged(document.errors[0].message.split("\n")[0] ?? "not YAML");
  const root: unknown = document.toJS();
  if (root === null) return ok([]);
  const entries: unknown = typeof root === "object" && "nodes" in root ? root.nodes : undefined;
  if (typeof entries !== "object" || entries === null) return damaged("wanted a map under 'nodes'");
  const nodes: PinnedNode[] = [];
  for (const [address, entry] of Object.entries(entries) as [string, unknown][]) {
    const fields = typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>) : {};
    const { fingerprint, name } = fields;
    if (typeof fingerprint !== "string" || !/^SHA256:[A-Za-z0-9+/]{43}$/.test(fingerprint)) {
      return damaged(`${address} has no fingerprint`);
    }
    nodes.push({ address, fingerprint, ...(typeof name === "string" ? { name } : {}) });
  }
  return ok(nodes);
}

function formatNodes(nodes: readonly PinnedNode[]): string {
  const entries = nodes.map(({ address, fingerprint, name }) => [
    address,
    { fingerprint, ...(name === undefined ? {} : { name }) },
  ]);
  const head = "# Kept by cctl: the fingerprint each node is known by.\n";
  return head + stringify({ nodes: Object.fromEntries(entries) }, { lineWidth: 0 });
}
