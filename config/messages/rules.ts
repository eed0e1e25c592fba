import { problem, quote, type Problem } from "./codes.ts";

/** How ranges are called in messages. */
export const rangeName = {
  podCIDR: "the pod range",
  serviceCIDR: "the service range",
  overlay: (name: string | undefined): string => `the address of ${name ?? "an overlay"}`,
};

/** What can be wrong between fields. */
export const ruleSays = {
  roleMissing: (): Problem =>
    problem("missing", "role is required when the API is off", "nobody could tell the node its role later"),
  tokenMissing: (): Problem =>
    problem(
      "missing",
      "a worker needs a join token",
      "join.token or join.tokenFrom; `k0s token create --role worker` makes one",
    ),
  secretMissing: (first: string, second: string): Problem =>
    problem("missing", `one of ${first} and ${second} is required`),
  keyMissing: (): Problem =>
    problem(
      "missing",
      "one of privateKey, privateKeyFrom and generateKey is required",
      "generateKey: true makes one on the node",
    ),
  sourceMissing: (): Problem => problem("missing", "one of url and file is required"),
  exclusive: (first: string, second: string): Problem =>
    problem("conflict", `${first} and ${second} exclude each other`, "keep one of them"),
  authFileWithoutUrl: (): Problem => problem("conflict", "authFile is for a url only"),
  singleJoins: (): Problem => problem("role", "a single node joins nothing", "take join out, or choose another role"),
  notOnWorker: (what: string): Problem => problem("role", `${what} is for controllers, not for a worker`),
  patchOnWorker: (): Problem => problem("no-effect", "a worker has no k0s.yaml, so the patch does nothing"),
  haRole: (role: string): Problem => problem("role", `HA is not for role ${role}`, "controller or controller+worker"),
  notEnabled: (block: string, field: string): Problem =>
    problem("conflict", `${field} is given, but ${block} is not enabled`, `set ${block}.enabled: true, or take it out`),
  haEndpointMissing: (): Problem => problem("missing", "HA needs cluster.endpoint", "the HA address, or a name for it"),
  haAddressMissing: (): Problem => problem("missing", "HA needs a virtual address", "e.g. virtualIP: 192.0.2.100/24"),
  haEndpoint: (endpoint: string, address: string): Problem =>
    problem(
      "conflict",
      `the endpoint ${endpoint} is not the HA address ${address}`,
      "use that address, or a name for it",
    ),
  sqliteController: (): Problem =>
    problem("conflict", "sqlite is for the only controller of a cluster", "etcd; or role single or controller+worker"),
  sqliteJoin: (): Problem =>
    problem("conflict", "a second controller on a file store would found a cluster of its own", "etcd"),
  sqliteHa: (): Problem => problem("conflict", "HA needs etcd: a file store is on one controller only"),
  overlap: (what: string, range: string, other: string, otherRange: string): Problem =>
    problem("conflict", `${what} ${range} overlaps ${other} ${otherRange}`, "take another range for one of them"),
  addressInRange: (address: string, other: string, range: string): Problem =>
    problem("conflict", `the HA address ${address} lies in ${other} ${range}`, "take an address outside of it"),
  duplicateName: (kind: string, name: string): Problem => problem("conflict", `two ${kind} are named ${quote(name)}`),
  duplicateTaint: (key: string, effect: string): Problem =>
    problem("conflict", `a second taint ${key} with effect ${effect}`),
  duplicateKeyOf: (what: string): Problem => problem("conflict", `a second ${what} with the same public key`),
  undeclaredRepository: (name: string): Problem =>
    problem("reference", `no add-on declares the repository ${quote(name)}`, "give one add-on repository: {name, url}"),
  repositoryTwice: (name: string): Problem => problem("conflict", `the repository ${quote(name)} has two URLs`),
  handoverCni: (): Problem => problem("conflict", "a hand-over is for cni custom only"),
  handoverStack: (name: string): Problem =>
    problem("reference", `manifests has no stack ${quote(name)}`, "name the stack that installs the CNI"),
  handoverNeeds: (mode: string, what: string): Problem => problem("missing", `mode ${mode} needs ${what}`),
  scheduleWithoutMode: (): Problem =>
    problem(
      "conflict",
      "a schedule for nothing: automatic is none",
      "set automatic to download or apply, or take it out",
    ),
  claimedTwice: (device: string, other: string): Problem =>
    problem("conflict", `${device} is claimed by ${other} already`, "one disk, one purpose"),
  mountTwice: (mount: string, other: string): Problem =>
    problem("conflict", `${quote(mount)} is the mount point of ${other} already`),
  mountWithoutFilesystem: (): Problem => problem("conflict", "there is nothing to mount with filesystem none"),
  fewMembers: (level: number, least: number, got: number): Problem =>
    problem("value", `RAID ${level} needs at least ${least} devices, got ${got}`),
  fewInVdev: (type: string, least: number, got: number): Problem =>
    problem("value", `a ${type} needs at least ${least} devices, got ${got}`),
  noVdevs: (): Problem => problem("value", "a pool needs at least one vdev"),
  sparesOnStripe: (): Problem => problem("conflict", "RAID 0 has no use for spares: it cannot lose a disk"),
  luksUndeclared: (name: string): Problem => problem("reference", `raid declares no array ${quote(name)}`),
  luksFilesystem: (name: string): Problem =>
    problem("conflict", `the array ${quote(name)} has a filesystem of its own`, `set filesystem: none on it`),
  passphraseWithTpm: (): Problem => problem("conflict", "a passphrase is for unlock: passphrase, not tpm2"),
  sizesCross: (min: string, max: string): Problem => problem("conflict", `minSize ${min} is more than maxSize ${max}`),
  unstableDevice: (path: string): Problem =>
    problem(
      "unstable-device",
      `${path} may be another disk at the next boot`,
      "use /dev/disk/by-id/… or a selector such as {serial: …}",
    ),
  secondNodeAddress: (other: string): Problem => problem("conflict", `${other} is the node address already`),
  mtuIpv6: (mtu: number): Problem => problem("value", `IPv6 needs an MTU of at least 1280, got ${mtu}`),
  rangeTwice: (range: string, other: number): Problem =>
    problem("conflict", `${range} is a range of peers[${other}] already`, "nested ranges are fine, equal ones are not"),
  rangeRepeated: (range: string): Problem => problem("repeated", `${range} stands twice in this list`),
  manifestBroken: (line: number): Problem => problem("value", `line ${line} of it is not valid YAML`),
  manifestNoObject: (index: number, what: string): Problem =>
    problem("value", `document ${index} of it has no ${what}`, "every object needs apiVersion and kind"),
  manifestEmpty: (): Problem => problem("value", "it holds no object"),
  noFiles: (): Problem => problem("value", "a stack needs at least one file"),
  apiOffWith: (field: string): Problem => problem("conflict", `${field} is given, but the API is off`),
  insecureWithCa: (): Problem =>
    problem("conflict", "insecure and an operator CA exclude each other", "take insecure out"),
  insecureOutside: (): Problem => problem("conflict", "insecure needs enabled: true and no CA"),
  caPrivateKey: (): Problem =>
    problem(
      "compromised",
      "a private key stands in operatorCA: treat it as compromised",
      "make a new CA, and put only its certificate here",
    ),
  caCount: (count: number): Problem =>
    problem(
      "value",
      `wanted exactly one PEM certificate, got ${count}`,
      "-----BEGIN CERTIFICATE----- … -----END CERTIFICATE-----",
    ),
  caBroken: (): Problem => problem("value", "the certificate is damaged"),
  caNotCa: (): Problem => problem("value", "the certificate is not one of a CA", "basicConstraints must say CA:TRUE"),
  caNoCertSign: (): Problem => problem("value", "the CA may not sign certificates", "keyUsage must hold keyCertSign"),
  caExpired: (until: string): Problem => problem("expired", `the CA expired on ${until}`),
  caNotYet: (from: string): Problem => problem("expired", `the CA is valid only from ${from}`, "check the clock"),
  tokenForm: (): Problem =>
    problem("value", "this is no k0s join token", "the one line that `k0s token create` prints"),
  tokenRole: (got: string, role: string): Problem =>
    problem(
      "value",
      `the token is for a ${got}, this node is a ${role}`,
      `make one with \`k0s token create --role ${role === "worker" ? "worker" : "controller"}\``,
    ),
  tokenServer: (server: string, endpoint: string): Problem =>
    problem(
      "other-server",
      `the token leads to ${quote(server)}, the endpoint is ${quote(endpoint)}`,
      "fine if both reach the same cluster; else make the token there",
    ),
  tokenExpired: (until: string): Problem =>
    problem("expired", `the cluster CA in the token expired on ${until}`, "make a new token on a controller"),
  unlistedVersion: (version: string): Problem =>
    problem(
      "unlisted-version",
      `this release does not list ${version}`,
      "the node refuses a version other than its image's",
    ),
};
