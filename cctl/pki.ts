/** The operators' CA and their certificates. The CA key never leaves this machine and is never overwritten. */
import { X509Certificate } from "node:crypto";
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { CLIENT_LIFETIME_MS, issueClient, mintAuthority } from "../pki/driver.ts";
import { fingerprintOfPem } from "../pki/fingerprint.ts";
import type { KeyPair } from "../pki/model.ts";
import { OPERATOR_ROLES, type OperatorRole } from "../kit/operator-role.ts";
import type { Arguments, FlagSpec } from "./arguments.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { openStore } from "./store.ts";

const identityFlags: readonly FlagSpec[] = [
  { name: "name", value: "NAME", help: "whom the certificate names; default $USER" },
  { name: "lifetime", value: "90d", help: "of the certificate: days (d) or hours (h)" },
];

export const pkiCommands: readonly CctlCommand[] = [
  {
    words: ["pki", "init"],
    operands: "",
    summary: "make the operator CA, and your admin certificate",
    flags: identityFlags,
    run: init,
  },
  {
    words: ["pki", "issue"],
    operands: "",
    summary: "make a client certificate: for yourself, or with --to for somebody else",
    flags: [
      ...identityFlags,
      { name: "role", value: OPERATOR_ROLES.join("|"), help: "default admin; with --to it must be given" },
      { name: "to", value: "FOLDER", help: "a new store, to be handed over whole; it lacks the CA key" },
    ],
    run: issue,
  },
  {
    words: ["pki", "show"],
    operands: "",
    summary: "whose certificates these are and when they end",
    flags: [],
    run: show,
  },
];

async function init(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const { store } = context;
  const known = await store.readText("ca");
  if (!known.ok) return known;
  const key = await store.readKey("caKey");
  if (!key.ok) return key;
  const refuse = (): Result<never, AppError> =>
    fail("exists", `there is an operator CA in ${store.dir} already`, {
      hint: "it is never overwritten, nodes obey it; another one goes into another --dir",
    });
  if (known.value !== undefined || key.value !== undefined) return refuse();
  const request = readRequest(context, given);
  if (!request.ok) return request;
  const authority = await mintAuthority({
    commonName: "Corium operators",
    nowMs: context.clock.nowMs(),
    random: context.random,
  });
  // The key first: a CA whose key was lost would be in the way of the next try.
  const written = await writeAll([
    () => store.write("caKey", authority.privateKey, { isNew: true }),
    () => store.write("ca", authority.certificate),
  ]);
  if (!written.ok) return written.error.code === "EEXIST" ? refuse() : written;
  const issued = await issueInto(context, store, authority, request.value);
  if (!issued.ok) return issued;
  context.io.out(
    `operator CA   ${fingerprintOfPem(authority.certificate) ?? ""}\n` +
      `certificate   ${request.value.name} (${request.value.role}), until ${issued.value}\n` +
      `kept in       ${store.dir}\n\n` +
      `Back up ${store.path("caKey")}: who has it commands your nodes, and without it they need their console.\n` +
      "Next: cctl enroll ADDRESS\n",
  );
  return ok(exitStatus.done);
}

async function issue(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const { store } = context;
  const certificate = await store.readText("ca");
  if (!certificate.ok) return certificate;
  const key = await store.readKey("caKey");
  if (!key.ok) return key;
  if (certificate.value === undefined || key.value === undefined) {
    return fail("no-ca", `there is no operator CA with its key in ${store.dir}`, {
      hint:
        certificate.value === undefined
          ? "cctl pki init makes one"
          : "whoever made this store has the key, and issues certificates for it",
    });
  }
  const request = readRequest(context, given);
  if (!request.ok) return request;
  if (given.flags.has("to") && !given.flags.has("role")) {
    return fail("usage", "what may the other one do?", { hint: `give --role ${OPERATOR_ROLES.join("|")}` });
  }
  const authority = { certificate: certificate.value, privateKey: key.value.reveal() };
  const folder = given.flags.get("to");
  if (folder === undefined) {
    const issued = await issueInto(context, store, authority, request.value);
    if (!issued.ok) return issued;
    context.io.out(`certificate   ${request.value.name} (${request.value.role}), until ${issued.value}\n`);
    return ok(exitStatus.done);
  }
  const other = openStore(context.files, folder);
  for (const file of ["certificate", "key", "ca", "caKey"] as const) {
    const found = await context.files.stat(other.path(file));
    if (!found.ok) return found;
    if (found.value !== null)
      return fail("exists", `${other.path(file)} is there already`, { hint: "name a new folder" });
  }
  const nodes = await store.readText("config");
  if (!nodes.ok) return nodes;
  const copied = await writeAll([
    () => other.write("ca", authority.certificate),
    // Who gets the folder must not have to trust the first answer of a node.
    ...(nodes.value === undefined ? [] : [() => other.write("config", nodes.value ?? "")]),
  ]);
  if (!copied.ok) return copied;
  const issued = await issueInto(context, other, authority, request.value);
  if (!issued.ok) return issued;
  context.io.out(
    `certificate   ${request.value.name} (${request.value.role}), until ${issued.value}\n` +
      `kept in       ${folder}\n\nHand it over whole, by a safe way: it holds the private key.\n`,
  );
  return ok(exitStatus.done);
}

async function show(context: Context): Promise<Result<number, AppError>> {
  const { store } = context;
  const ca = await store.readText("ca");
  if (!ca.ok) return ca;
  const own = await store.readText("certificate");
  if (!own.ok) return own;
  const nodes = await store.nodes();
  if (!nodes.ok) return nodes;
  const report = {
    store: store.dir,
    ...(ca.value === undefined ? {} : { ca: describe(ca.value) }),
    ...(own.value === undefined ? {} : { certificate: describe(own.value) }),
    nodes: nodes.value,
  };
  if (context.output === "json") context.io.out(`${JSON.stringify(report)}\n`);
  else {
    const line = (label: string, pem: string | undefined): string => {
      if (pem === undefined) return `${label.padEnd(14)}none\n`;
      const { subject, fingerprint, expires } = describe(pem);
      return `${label.padEnd(14)}${fingerprint}\n${" ".repeat(14)}${subject}, until ${expires}\n`;
    };
    const pins = nodes.value.map(({ address, fingerprint, name }) =>
      `${fingerprint}  ${address}  ${name ?? ""}`.trimEnd(),
    );
    context.io.out(
      `store         ${store.dir}\n${line("operator CA", ca.value)}${line("certificate", own.value)}` +
        `nodes         ${pins.length === 0 ? "none" : pins.join(`\n${" ".repeat(14)}`)}\n`,
    );
  }
  return ok(exitStatus.done);
}

interface Request {
  readonly name: string;
  readonly role: OperatorRole;
  readonly lifetimeMs: number;
}

function readRequest(context: Context, given: Arguments): Result<Request, AppError> {
  const name = given.flags.get("name") ?? context.io.env["USER"] ?? "operator";
  if (!/^[\w.@ -]{1,64}$/.test(name)) return fail("usage", `'${name}' is no name for a certificate`);
  const role = OPERATOR_ROLES.find((known) => known === (given.flags.get("role") ?? "admin"));
  if (role === undefined)
    return fail("usage", `'${given.flags.get("role") ?? ""}' is no role: wanted ${OPERATOR_ROLES.join(", ")}`);
  const text = given.flags.get("lifetime");
  if (text === undefined) return ok({ name, role, lifetimeMs: CLIENT_LIFETIME_MS });
  const lifetime = /^([1-9]\d{0,4})([dh])$/.exec(text);
  if (lifetime === null) return fail("usage", `'${text}' is no lifetime: wanted days or hours, as 90d or 12h`);
  return ok({ name, role, lifetimeMs: Number(lifetime[1]) * (lifetime[2] === "d" ? 86_400_000 : 3_600_000) });
}

/** The day it ends. */
async function issueInto(
  context: Context,
  store: Context["store"],
  authority: KeyPair,
  request: Request,
): Promise<Result<string, AppError>> {
  const pair = await issueClient({ authority, nowMs: context.clock.nowMs(), random: context.random, ...request });
  const written = await writeAll([
    () => store.write("key", pair.privateKey),
    () => store.write("certificate", pair.certificate),
  ]);
  return written.ok ? ok(describe(pair.certificate).expires) : written;
}

async function writeAll(writes: readonly (() => Promise<Result<void, AppError>>)[]): Promise<Result<void, AppError>> {
  for (const write of writes) {
    const written = await write();
    if (!written.ok) return written;
  }
  return ok(undefined);
}

function describe(pem: string): { subject: string; fingerprint: string; expires: string } {
  const certificate = new X509Certificate(pem);
  return {
    subject: certificate.subject.split("\n").reverse().join(", "),
    fingerprint: fingerprintOfPem(pem) ?? "",
    expires: certificate.validToDate.toISOString().slice(0, 10),
  };
}
