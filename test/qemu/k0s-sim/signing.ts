/**
 * Certificates for kubelets: a bootstrap token may ask for one, which is signed at once where kube-controller-manager takes
 * a second (RBAC of `system:node-bootstrapper` and of `…:nodeclient`, which k0s binds to `system:bootstrappers`).
 */
import { bootstrapToken } from "./api-server.ts";
import { type Pair, signNodeRequest } from "./certificates.ts";
import { isRecord } from "./schema.ts";
import { findResource, type KubeObject } from "./resources.ts";
import type { Store } from "./store.ts";
import type { Answer, Call } from "./tls-server.ts";

const PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const SIGNER = "kubernetes.io/kube-apiserver-client-kubelet";

/** Undefined for any other call, and for another controller that keeps what it has signed. `keep` writes where the leader is. */
export async function answerSigning(
  {
    ca,
    store,
    keep,
  }: { readonly ca: Pair; readonly store: Store; readonly keep: (object: KubeObject) => Promise<void> },
  call: Call,
): Promise<Answer | undefined> {
  if (call.method !== "POST" || call.path !== PATH || call.bearer === undefined) return undefined;
  if (bootstrapToken(store, call.bearer) !== "worker")
    return { status: 401, json: { kind: "Status", status: "Failure", reason: "Unauthorized", code: 401 } };
  const object = JSON.parse(call.body) as KubeObject & { readonly metadata: { readonly generateName?: string } };
  const spec = isRecord(object["spec"]) ? object["spec"] : {};
  const request = Buffer.from(String(spec["request"]), "base64").toString();
  const certificate = spec["signerName"] === SIGNER ? await signNodeRequest(ca, request) : undefined;
  const name = `${object.metadata.generateName ?? "csr-"}${crypto.randomUUID().slice(0, 5)}`;
  const conditions = [{ type: certificate === undefined ? "Denied" : "Approved", status: "True" }];
  const signed = certificate === undefined ? {} : { certificate: Buffer.from(certificate).toString("base64") };
  const kept: KubeObject = { ...object, metadata: { name }, status: { conditions, ...signed } };
  if (findResource(store.resources(), "certificatesigningrequests") !== undefined) await keep(kept);
  return { status: 201, json: { ...kept, status: {} } };
}
