/**
 * The only place that loads @peculiar/x509, when something of it is first used: it takes half of the daemon's start,
 * and a node in service needs it only once somebody calls.
 *
 * It needs the polyfill to have run before it, and as imports the order of the two is not kept: Bun and its bundler
 * evaluate CommonJS modules ahead of the ES modules around them. Two calls of `require` stay in their order.
 */
import type * as types from "@peculiar/x509";

let loaded: typeof types | undefined;

/** Ahead of its first use, when there is time. */
export function loadX509(): typeof types {
  if (loaded === undefined) {
    require("reflect-metadata");
    loaded = require("@peculiar/x509") as typeof types;
    loaded.cryptoProvider.set(crypto);
  }
  return loaded;
}

export const x509: typeof types = new Proxy({} as typeof types, {
  get: (_target, name) => Reflect.get(loadX509(), name) as unknown,
});
