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
      "join.token or join.tokenFrom; `cctl join-token CONTROLLER` makes one",
    ),
  secretMissing: (first: string, second: string): Problem =>
    problem("missing", `one of ${first} and ${second} is required`, `${second} keeps it out of the document`),
  keyMissing: (): Problem =>
    problem(
      "missing",
      "one of privateKey, privateKeyFrom and generateKey is required",
      "generateKey: true makes one on the node",
    ),
  sourceMissing: (): Problem =>
    problem("missing", "one of url and file is required", "an https URL, or a path on the node"),
  exclusive: (first: string, second: string): Problem =>
    problem("conflict", `${first} and ${second} exclude each other`, "keep one of them"),
  authFileWithoutUrl: (): Problem =>
    problem("conflict", "authFile is for a url only", "take it out, or give url instead of file"),
  singleJoins: (): Problem => problem("role", "a single node joins nothing", "take join out, or choose another role"),
  notOnWorker: (what: string): Problem =>
    problem("role", `${what} is for controllers, not for a worker`, "put it into the controllers' documents"),
  patchOnWorker: (): Problem =>
    problem(
      "no-effect",
      "a worker has no k0s.yaml, so the patch does nothing",
      "put it into the controllers' documents",
    ),
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
  sqliteHa: (): Problem => problem("conflict", "HA needs etcd: a file store is on one controller only", "etcd"),
  peerIsVirtual: (address: string): Problem =>
    problem("conflict", `${address} is the HA address itself`, "name the other controllers by addresses of their own"),
  peerFamily: (address: string, virtual: string): Problem =>
    problem(
      "conflict",
      `${address} is of another family than the HA address ${virtual}, and keepalived leaves such a peer out`,
      "name the other controllers by addresses of its family",
    ),
  overlayIsVirtual: (address: string, overlay: string | undefined): Problem =>
    problem(
      "conflict",
      `${address} is the HA address and the address of overlay ${overlay ?? ""}`,
      "the HA address moves from node to node: take one that no interface has",
    ),
  passwordComment: (): Problem =>
    problem(
      "read-as-comment",
      "keepalived takes a password that starts with # or ! for a comment",
      "start it with a letter or digit",
    ),
  backupLater: (): Problem =>
    problem("not-yet", "this release makes no backups", "save them by other means until one does"),
  overlap: (what: string, range: string, other: string, otherRange: string): Problem =>
    problem("conflict", `${what} ${range} overlaps ${other} ${otherRange}`, "take another range for one of them"),
  addressInRange: (address: string, other: string, range: string): Problem =>
    problem("conflict", `the HA address ${address} lies in ${other} ${range}`, "take an address outside of it"),
  duplicateName: (kind: string, name: string): Problem =>
    problem("conflict", `two ${kind} are named ${quote(name)}`, "give one of them another name"),
  duplicateTaint: (key: string, effect: string): Problem =>
    problem("conflict", `a second taint ${key} with effect ${effect}`, "keep one of them"),
  duplicateKeyOf: (what: string): Problem =>
    problem(
      "conflict",
      `a second ${what} with the same public key`,
      "a key is one machine: merge them, or correct the key",
    ),
  undeclaredRepository: (name: string): Problem =>
    problem("reference", `no add-on declares the repository ${quote(name)}`, "give one add-on repository: {name, url}"),
  repositoryTwice: (name: string): Problem =>
    problem("conflict", `the repository ${quote(name)} has two URLs`, "give one of them another name"),
  handoverCni: (): Problem =>
    problem("conflict", "a hand-over is for cni custom only", "set network.cni: custom, or take it out"),
  handoverStack: (name: string): Problem =>
    problem("reference", `manifests has no stack ${quote(name)}`, "name the stack that installs the CNI"),
  handoverNeeds: (mode: string, what: string): Problem =>
    problem("missing", `mode ${mode} needs ${what}`, "give it, or set mode: disabled"),
  scheduleWithoutMode: (): Problem =>
    problem(
      "conflict",
      "a schedule for nothing: automatic is none",
      "set automatic to download or apply, or take it out",
    ),
  claimedTwice: (device: string, other: string): Problem =>
    problem("conflict", `${device} is claimed by ${other} already`, "one disk, one purpose"),
  mountTwice: (mount: string, other: string): Problem =>
    problem("conflict", `${quote(mount)} is the mount point of ${other} already`, "choose another folder"),
  mountWithoutFilesystem: (): Problem =>
    problem("conflict", "there is nothing to mount with filesystem none", "take mountPoint out, or choose ext4 or xfs"),
  fewMembers: (level: number, least: number, got: number): Problem =>
    problem("value", `RAID ${level} needs at least ${least} devices, got ${got}`, "add disks, or choose another level"),
  fewInVdev: (type: string, least: number, got: number): Problem =>
    problem("value", `a ${type} needs at least ${least} devices, got ${got}`, "add disks, or choose another type"),
  noVdevs: (): Problem =>
    problem("value", "a pool needs at least one vdev", "e.g. vdevs: [{type: mirror, devices: […]}]"),
  systemArray: (name: string): Problem =>
    problem("conflict", `${quote(name)} is the array of the mirrored system itself`, "choose another name"),
  arrayNumber: (name: string): Problem =>
    problem(
      "value",
      `${quote(name)} is the number of a kernel device to mdadm, which another array may have`,
      "choose a word: data",
    ),
  sparesOnStripe: (): Problem =>
    problem(
      "conflict",
      "RAID 0 has no use for spares: it cannot lose a disk",
      "take spares out, or choose another level",
    ),
  luksUndeclared: (name: string): Problem =>
    problem("reference", `raid declares no array ${quote(name)}`, "declare it with filesystem: none, or name a disk"),
  luksFilesystem: (name: string): Problem =>
    problem("conflict", `the array ${quote(name)} has a filesystem of its own`, `set filesystem: none on it`),
  passphraseWithTpm: (): Problem =>
    problem("conflict", "a passphrase is for unlock: passphrase, not tpm2", "set unlock: passphrase, or take it out"),
  sizesCross: (min: string, max: string): Problem =>
    problem("conflict", `minSize ${min} is more than maxSize ${max}`, "swap them"),
  kindOnBus: (type: string, bus: string): Problem =>
    problem("conflict", `no disk is of type ${type} on bus ${bus}`, "take one of them out: type nvme is bus nvme"),
  unstableDevice: (path: string): Problem =>
    problem(
      "unstable-device",
      `${path} may be another disk at the next boot`,
      "use /dev/disk/by-id/… or a selector such as {serial: …}",
    ),
  secondNodeAddress: (other: string | undefined): Problem =>
    problem(
      "conflict",
      `${other ?? "another interface"} is the node address already`,
      "a node has one: keep one of them",
    ),
  portTwice: (port: number, other: string | undefined): Problem =>
    problem("conflict", `${other ?? "another interface"} listens on ${port} already`, "one port, one interface"),
  addressTwice: (address: string, other: string | undefined): Problem =>
    problem("conflict", `${address} is an address of ${other ?? "another interface"} already`, "take another one"),
  ownKey: (): Problem =>
    problem("conflict", "this is the public key of the interface itself", "put the key of the other machine here"),
  mtuIpv6: (mtu: number): Problem =>
    problem(
      "value",
      `IPv6, its own or behind a peer, needs an MTU of at least 1280, got ${mtu}`,
      "RFC 8200, section 5",
    ),
  rangeTwice: (range: string, other: number): Problem =>
    problem("conflict", `${range} is a range of peers[${other}] already`, "nested ranges are fine, equal ones are not"),
  rangeRepeated: (range: string): Problem =>
    problem("repeated", `${range} stands twice in this list`, "keep one of them"),
  manifestBroken: (line: number): Problem =>
    problem("value", `line ${line} of it is not valid YAML`, "lines count from the content's first"),
  manifestNoObject: (index: number, what: string): Problem =>
    problem("value", `document ${index} of it has no ${what}`, "every object needs apiVersion and kind"),
  manifestEmpty: (): Problem => problem("value", "it holds no object", "an object has apiVersion and kind"),
  noFiles: (): Problem => problem("value", "a stack needs at least one file", "files: [{name: NAME.yaml, content: …}]"),
  apiOffWith: (field: string): Problem =>
    problem("conflict", `${field} is given, but the API is off`, "set api.enabled: true, or take it out"),
  insecureWithCa: (): Problem =>
    problem("conflict", "insecure and an operator CA exclude each other", "take insecure out"),
  insecureOutside: (): Problem =>
    problem("conflict", "insecure needs enabled: true and no CA", "spell out enabled: true, or take insecure out"),
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
  caBroken: (): Problem => problem("value", "the certificate is damaged", "paste it again, from BEGIN to END"),
  caNotCa: (): Problem => problem("value", "the certificate is not one of a CA", "basicConstraints must say CA:TRUE"),
  caNoCertSign: (): Problem => problem("value", "the CA may not sign certificates", "keyUsage must hold keyCertSign"),
  caExpired: (until: string): Problem =>
    problem("expired", `the CA expired on ${until}`, "put the new CA here, or check the clock"),
  caNotYet: (from: string): Problem => problem("expired", `the CA is valid only from ${from}`, "check the clock"),
  tokenForm: (why: string): Problem =>
    problem("value", `this is no k0s join token: ${why}`, "the one line that `cctl join-token` prints"),
  tokenRole: (got: string, role: string): Problem =>
    problem(
      "value",
      `the token is for a ${got}, this node is a ${role}`,
      `make one with \`cctl join-token CONTROLLER --role ${role === "worker" ? "worker" : "controller"}\``,
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
