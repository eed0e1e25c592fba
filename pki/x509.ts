/**
 * The only place that loads @peculiar/x509. It needs the polyfill to have run before it, and as imports the order of
 * the two is not kept: Bun and its bundler evaluate CommonJS modules ahead of the ES modules around them. Two calls
 * of `require` stay in their order, from source and in the compiled binary.
 */
import type * as types from "@peculiar/x509";

require("reflect-metadata");

export const x509 = require("@peculiar/x509") as typeof types;
