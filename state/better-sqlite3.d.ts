/** The entries that name a platform: these embed the native addon into the compiled binary, the main one does not. */
declare module "better-sqlite3/linux-x64" {
  import Database from "better-sqlite3";
  export = Database;
}
declare module "better-sqlite3/linux-arm64" {
  import Database from "better-sqlite3";
  export = Database;
}
