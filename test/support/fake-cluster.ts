/** A cluster as a machine that wants to join hears it: the join API on 9443, and the API server on 6443. */
import { appError } from "../../kit/app-error.ts";
import type { Http, HttpRequest } from "../../kit/ports.ts";
import { err, ok } from "../../kit/result.ts";
import type { KeyPair } from "../../pki/model.ts";

export interface FakeCluster {
  /** Of the Kubernetes API: Node objects by name, members of etcd as k0s lists them. */
  readonly nodes: Map<string, object>;
  members: readonly object[] | undefined;
  /** The token is none that the cluster knows. */
  isTokenRefused: boolean;
  /** Requests that find nobody before somebody answers. */
  silentFor: number;
  /** Instead of everything. */
  status?: number;
  /** Who answers can't prove to be of the cluster. */
  isForeign: boolean;
  /** Its certificate has ended. */
  isExpired: boolean;
  readonly asked: readonly string[];
  readonly http: Http;
}

export function fakeCluster(authority?: KeyPair): FakeCluster {
  const asked: string[] = [];
  const json = (status: number, value: unknown) => ({ status, body: new TextEncoder().encode(JSON.stringify(value)) });
  const base64 = (text: string): string => Buffer.from(text).toString("base64");

  const answer = ({ url, bearer, identity, post }: HttpRequest) => {
    const { port, pathname } = new URL(url);
    if (cluster.status !== undefined) return json(cluster.status, {});
    if (identity === undefined && (cluster.isTokenRefused || bearer === undefined)) return json(401, {});
    if (port === "9443" && pathname === "/v1beta1/ca" && authority !== undefined)
      return json(200, { cert: base64(authority.certificate), key: base64(authority.privateKey) });
    if (pathname.endsWith("/certificatesigningrequests") && post !== undefined) {
      const asks = base64("-----BEGIN CERTIFICATE REQUEST-----").slice(0, -2);
      return post.includes(asks) ? json(201, { metadata: { name: "corium-join-x" } }) : json(422, {});
    }
    if (pathname.endsWith("/certificatesigningrequests/corium-join-x"))
      return json(200, { status: { certificate: base64("a certificate") } });
    if (identity === undefined) return json(403, {});
    const node = /^\/api\/v1\/nodes\/(.+)$/.exec(pathname)?.[1];
    if (node !== undefined) return cluster.nodes.has(node) ? json(200, cluster.nodes.get(node)) : json(404, {});
    if (pathname.endsWith("/etcdmembers") && cluster.members !== undefined)
      return json(200, { items: cluster.members });
    return json(404, {});
  };

  const cluster: FakeCluster = {
    nodes: new Map(),
    members: undefined,
    isTokenRefused: false,
    silentFor: 0,
    isForeign: false,
    isExpired: false,
    asked,
    http: async (request) => {
      asked.push(`${request.post === undefined ? "GET" : "POST"} ${request.url}`);
      if (cluster.silentFor > 0) {
        cluster.silentFor -= 1;
        return err(appError("refused", `${new URL(request.url).host} refused the connection`));
      }
      if (cluster.isExpired) return err(appError("tls-expired", `the certificate of ${request.url} has expired`));
      if (cluster.isForeign) return err(appError("tls", "the certificate is not trusted"));
      return ok({ ...answer(request), url: request.url });
    },
  };
  return cluster;
}
