/** Every certificate that this node lives by, and when it ends: read from their files, nobody is asked. */
import { readCertificates } from "../config/certificate.ts";
import { K0S_DATA } from "../k0s/paths.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { State } from "../state/open.ts";

/** Who renews it, and when, decides what somebody has to do about its end. */
export type CertificateKind = "api" | "operator-ca" | "k0s" | "cluster-ca" | "kubelet";

export interface CertificateEnd {
  /** Once on a node: `k0s server`, `etcd peer`, `kubelet client`, `api`, `operator CA`. */
  readonly name: string;
  readonly kind: CertificateKind;
  readonly path?: string;
  readonly notAfterMs: number;
}

/** What there is to know, or to do, about the end of one of this kind (facts: section 5). */
export const RENEWAL: Readonly<Record<CertificateKind, string>> = {
  api: "clients pin it and do not look at its end",
  "operator-ca": "nobody can command this node over the network afterwards: pin a new operator CA at its console",
  k0s: "k0s renews it when it starts: `cctl restart NODE k0scontroller`",
  "cluster-ca": "k0s never renews it: the cluster has to be made anew before",
  kubelet:
    "the kubelet renews it by itself, as long as it runs and reaches the cluster; after its end `cctl reset` and a new join token bring the node back",
};

const MAX_BYTES = 64 * 1024;
const KUBELET = `${K0S_DATA}/kubelet/pki`;

/** What can't be read is left out: k0s may be writing it. */
export async function readCertificateEnds(
  host: Host,
  paths: Pick<Paths, "apiDir">,
  state: Pick<State, "claim">,
): Promise<readonly CertificateEnd[]> {
  const found: CertificateEnd[] = [];
  const add = (name: string, kind: CertificateKind, pem: string, path?: string): void => {
    const [certificate] = readCertificates(pem);
    if (certificate === undefined) return;
    const isOfCluster = kind === "k0s" && certificate.isCa;
    const place = path === undefined ? {} : { path };
    found.push({ name, kind: isOfCluster ? "cluster-ca" : kind, notAfterMs: certificate.validToMs, ...place });
  };
  const addFile = async (name: string, kind: CertificateKind, path: string): Promise<void> => {
    const pem = await host.files.readText(path, { maxBytes: MAX_BYTES });
    if (pem.ok) add(name, kind, pem.value, path);
  };
  await addFile("api", "api", `${paths.apiDir}/server.pem`);
  const claim = state.claim.get();
  if (claim !== undefined) add("operator CA", "operator-ca", claim.operatorCA);
  for (const [owner, folder] of [
    ["k0s", `${K0S_DATA}/pki`],
    ["etcd", `${K0S_DATA}/pki/etcd`],
  ] as const) {
    const names = await host.files.list(folder);
    for (const file of names.ok ? names.value.filter((each) => each.endsWith(".crt")) : []) {
      await addFile(`${owner} ${file.slice(0, -4)}`, "k0s", `${folder}/${file}`);
    }
  }
  await addFile("kubelet client", "kubelet", `${KUBELET}/kubelet-client-current.pem`);
  await addFile("kubelet server", "kubelet", `${KUBELET}/kubelet-server-current.pem`);
  return found;
}

export const DAY_MS = 86_400_000;

/** Negative once it has ended. */
export const daysLeft = ({ notAfterMs }: CertificateEnd, nowMs: number): number =>
  Math.floor((notAfterMs - nowMs) / DAY_MS);

const endDate = ({ notAfterMs }: CertificateEnd): string => new Date(notAfterMs).toISOString().slice(0, 10);

/** Those that are alike in kind and date, in one sentence: k0s makes a dozen in one go. */
export function tellEnds(ends: readonly CertificateEnd[], nowMs: number): readonly string[] {
  const groups = new Map<string, CertificateEnd[]>();
  for (const end of ends) {
    const key = `${end.kind} ${endDate(end)}`;
    groups.set(key, [...(groups.get(key) ?? []), end]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const days = daysLeft(first, nowMs);
    const names = group.map(({ name }) => name).join(", ");
    const when = days < 0 ? `ended on ${endDate(first)}` : `ends on ${endDate(first)}, in ${days} days`;
    return [`${names}: ${when}; ${RENEWAL[first.kind]}`];
  });
}
