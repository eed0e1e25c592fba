/**
 * One call of each message of the catalogue, for the reference and for the tests of their wording. A message without
 * a sample does not compile.
 */
import { calendarSays } from "../../config/messages/calendar.ts";
import type { Problem } from "../../config/messages/codes.ts";
import { decodeSays } from "../../config/messages/decode.ts";
import { kindHint, kindName } from "../../config/messages/kinds.ts";
import { rangeName, ruleSays } from "../../config/messages/rules.ts";
import { valueSays } from "../../config/messages/values.ts";

type Catalogue = Readonly<Record<string, (...given: never[]) => Problem>>;
/** Several where the wording turns with what is given. */
type Samples<T extends Catalogue> = { readonly [K in keyof T]: readonly Parameters<T[K]>[] };

const KEY_FIELDS = ["name", "endpoint", "subjectAltNames"];

const decodeSamples: Samples<typeof decodeSays> = {
  unreadable: [["ENOENT"], ["EACCES"]],
  tooLarge: [[2_000_000]],
  notUtf8: [[]],
  tab: [[]],
  directive: [[]],
  secondDocument: [[]],
  aliasWithoutAnchor: [[]],
  aliasBomb: [[]],
  tooDeep: [[]],
  syntax: [["BAD_INDENT"], ["BAD_SCALAR_START"], ["BLOCK_AS_IMPLICIT_KEY"], ["MISSING_CHAR"]],
  emptyDocument: [[]],
  notAMap: [[kindName.list]],
  noConfiguration: [
    [undefined, undefined],
    ["rolle", "role"],
  ],
  coriumNotAMap: [[kindName.nothing]],
  coriumTwice: [[3]],
  foreignKeys: [[["users", "write_files"]]],
  duplicateKey: [[1]],
  nonStringKey: [[]],
  tag: [[]],
  unknownKey: [
    ["nmae", "name", KEY_FIELDS, undefined],
    ["color", undefined, KEY_FIELDS, undefined],
    [undefined, undefined, KEY_FIELDS, undefined],
    ["ha", undefined, KEY_FIELDS, kindHint.topLevel("ha")],
    ["<<", undefined, KEY_FIELDS, undefined],
  ],
  missing: [["name"]],
  wrongType: [
    [kindName.text, kindName.the("number", "1.10"), kindHint.quoteText("1.10", undefined)],
    [kindName.boolean, kindName.theText("yes"), kindHint.oldBoolean(true)],
    [kindName.number, kindName.theText("7"), kindHint.unquote],
    [kindName.list, kindName.map, kindHint.listEntries],
  ],
  notOneOf: [[["nvme", "ssd", "hdd"], '"NVMe"', "nvme"]],
  numberForm: [["012", 12]],
};

const valueSamples: Samples<typeof valueSays> = {
  empty: [[]],
  range: [[1, 255, 300]],
  inexact: [[]],
  label: [["Harbour"]],
  releaseName: [["Cert Manager"]],
  storageName: [["my disk"]],
  poolName: [["mirror1"]],
  interfaceName: [["WG0"]],
  linkName: [["eth 0"]],
  host: [["https://api.example.net"], ["api.example.net:6443"], ["*.example.net"], ["010.9.0.7"]],
  ip: [["192.0.2.12/24"]],
  ipWithPrefix: [["192.0.2.10"]],
  range4: [["10.244"]],
  hostBits: [["10.244.0.1/16", "10.244.0.0/16"]],
  ipv6Range: [["fd00::/48"]],
  maskedRange: [["10.9.0.7/24", "10.9.0.0/24"]],
  endpoint: [["https://hub.example.net"], ["hub"]],
  key32: [["the public key"]],
  calendar: [[calendarSays.month("13")]],
  cron: [["Sun 04:00"], [undefined]],
  duration: [[]],
  waitRange: [[]],
  httpsUrl: [[]],
  webUrl: [[]],
  absolutePath: [[]],
  mountPath: [["/srv/data/"]],
  mountPlace: [["/home/data"]],
  mountKept: [["/var/log"]],
  mountLength: [[]],
  deviceNotDev: [["sda"]],
  deviceNotNormal: [["/dev//sda"]],
  devicePartition: [["/dev/sda1"]],
  deviceArray: [["/dev/md127"]],
  emptySelector: [[]],
  size: [["500"]],
  chart: [["https://charts.example.com/whoami"], ["whoami"]],
  manifestFileName: [["ns.yml"]],
  k0sStack: [["coredns"]],
  password8: [[]],
  kubernetesVersion: [["v1.36"]],
  labelKey: [["a b"]],
  labelValue: [["a b"]],
  kubeletLabel: [["node-role.kubernetes.io/worker"]],
  ambiguous: [["no"]],
  quotedBoolean: [["false"]],
};

const ruleSamples: Samples<typeof ruleSays> = {
  roleMissing: [[]],
  tokenMissing: [[]],
  secretMissing: [["authPass", "authPassFrom"]],
  keyMissing: [[]],
  sourceMissing: [[]],
  exclusive: [["token", "tokenFrom"]],
  authFileWithoutUrl: [[]],
  singleJoins: [[]],
  notOnWorker: [["addons"]],
  patchOnWorker: [[]],
  haRole: [["single"]],
  notEnabled: [["backup", "keep"]],
  haEndpointMissing: [[]],
  haAddressMissing: [[]],
  haEndpoint: [["192.0.2.9", "192.0.2.100/24"]],
  sqliteController: [[]],
  sqliteJoin: [[]],
  sqliteHa: [[]],
  overlap: [[rangeName.overlay("wg0"), "10.244.0.1/24", rangeName.podCIDR, "10.244.0.0/16"]],
  addressInRange: [["10.244.0.9/24", rangeName.podCIDR, "10.244.0.0/16"]],
  duplicateName: [["arrays", "data"]],
  duplicateTaint: [["dedicated", "NoSchedule"]],
  duplicateKeyOf: [["peer"]],
  undeclaredRepository: [["jetstack"]],
  repositoryTwice: [["jetstack"]],
  handoverCni: [[]],
  handoverStack: [["site-cni"]],
  handoverNeeds: [["automatic", "application"]],
  scheduleWithoutMode: [[]],
  claimedTwice: [["/dev/disk/by-id/ata-EXAMPLE_0001", "install.disk"]],
  mountTwice: [["/srv/data", "disks[0]"]],
  mountWithoutFilesystem: [[]],
  fewMembers: [[5, 3, 2]],
  fewInVdev: [["mirror", 2, 1]],
  noVdevs: [[]],
  sparesOnStripe: [[]],
  luksUndeclared: [["data"]],
  luksFilesystem: [["data"]],
  passphraseWithTpm: [[]],
  sizesCross: [["2TB", "1TB"]],
  unstableDevice: [["/dev/sda"]],
  secondNodeAddress: [["wg0"]],
  mtuIpv6: [[1000]],
  rangeTwice: [["10.9.0.0/24", 0]],
  rangeRepeated: [["10.9.0.2/32"]],
  manifestBroken: [[7]],
  manifestNoObject: [[2, "kind"]],
  manifestEmpty: [[]],
  noFiles: [[]],
  apiOffWith: [["operatorCA"]],
  insecureWithCa: [[]],
  insecureOutside: [[]],
  caPrivateKey: [[]],
  caCount: [[2]],
  caBroken: [[]],
  caNotCa: [[]],
  caNoCertSign: [[]],
  caExpired: [["2026-03-01"]],
  caNotYet: [["2027-03-01"]],
  tokenForm: [[]],
  tokenRole: [["controller", "worker"]],
  tokenServer: [["192.0.2.10", "192.0.2.100"]],
  tokenExpired: [["2026-03-01"]],
  unlistedVersion: [["v1.20.1+k0s.0"]],
};

const callAll = <T extends Catalogue>(catalogue: T, samples: Samples<T>): readonly Problem[] =>
  Object.entries(samples).flatMap(([name, calls]) =>
    (calls as readonly (readonly never[])[]).map((given) => (catalogue[name] as Catalogue[string])(...given)),
  );

/** Every message that a document can get, in the order of the catalogue. */
export const sampleProblems: readonly Problem[] = [
  ...callAll(decodeSays, decodeSamples),
  ...callAll(valueSays, valueSamples),
  ...callAll(ruleSays, ruleSamples),
];
