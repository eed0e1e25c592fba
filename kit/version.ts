declare const CORIUM_VERSION: string | undefined;

/** Set when the binary is compiled (iso/compile.ts). */
export const version: string = typeof CORIUM_VERSION === "string" ? CORIUM_VERSION : "0.1.0-dev";
