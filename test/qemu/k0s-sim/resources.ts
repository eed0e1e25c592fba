/** Kinds the stand-in's API knows, and their names in paths and on kubectl's command line. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  readonly short?: string;
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly generation?: number;
    readonly resourceVersion?: string;
    readonly uid?: string;
  };
  readonly [key: string]: unknown;
}

const rows = (group: string, version: string, isNamespaced: boolean, list: string): readonly Resource[] =>
  list
    .trim()
    .split(/\s+/)
    .map((word) => {
      const [kind = "", plural = "", short] = word.split(":");
      const base = { group, version, kind, plural: plural === "" ? `${kind.toLowerCase()}s` : plural, isNamespaced };
      return short === undefined ? base : { ...base, short };
    });

export const BUILT_IN: readonly Resource[] = [
  ...rows("", "v1", false, "Namespace::ns Node::no PersistentVolume::pv"),
  ...rows(
    "",
    "v1",
    true,
    "Pod::po Service::svc ConfigMap::cm Secret ServiceAccount::sa Endpoints:endpoints:ep Event PersistentVolumeClaim::pvc",
  ),
  ...rows("apps", "v1", true, "Deployment::deploy DaemonSet::ds StatefulSet::sts ReplicaSet::rs"),
  ...rows("batch", "v1", true, "Job CronJob::cj"),
  ...rows("networking.k8s.io", "v1", true, "Ingress:ingresses:ing NetworkPolicy:networkpolicies:netpol"),
  ...rows("discovery.k8s.io", "v1", true, "EndpointSlice"),
  ...rows("coordination.k8s.io", "v1", true, "Lease"),
  ...rows("policy", "v1", true, "PodDisruptionBudget::pdb"),
  ...rows("rbac.authorization.k8s.io", "v1", false, "ClusterRole ClusterRoleBinding"),
  ...rows("rbac.authorization.k8s.io", "v1", true, "Role RoleBinding"),
  ...rows("storage.k8s.io", "v1", false, "StorageClass:storageclasses:sc"),
  ...rows("apiextensions.k8s.io", "v1", false, "CustomResourceDefinition::crd"),
  ...rows("helm.k0sproject.io", "v1beta1", true, "Chart"),
  ...rows("certificates.k8s.io", "v1", false, "CertificateSigningRequest::csr"),
  ...rows("etcd.k0sproject.io", "v1beta1", false, "EtcdMember"),
  ...rows("k0s.k0sproject.io", "v1beta1", true, "ClusterConfig"),
];

/** Built in, and what CustomResourceDefinitions add. */
export function allResources(definitions: readonly KubeObject[]): readonly Resource[] {
  const own = definitions.map((definition): Resource => {
    const spec = definition["spec"] as CrdSpec;
    const version = spec.versions.find((each) => each.storage === true) ?? spec.versions[0];
    const short = spec.names.shortNames?.[0];
    return {
      group: spec.group,
      version: version?.name ?? "v1",
      kind: spec.names.kind,
      plural: spec.names.plural,
      isNamespaced: spec.scope === "Namespaced",
      ...(short === undefined ? {} : { short }),
    };
  });
  return [...BUILT_IN, ...own];
}

interface CrdSpec {
  readonly group: string;
  readonly scope: string;
  readonly names: { readonly kind: string; readonly plural: string; readonly shortNames?: readonly string[] };
  readonly versions: readonly { readonly name: string; readonly storage?: boolean }[];
}

/** As kubectl takes it: `chart`, `charts`, `charts.helm.k0sproject.io`, `no`. */
export function findResource(resources: readonly Resource[], name: string): Resource | undefined {
  const wanted = name.toLowerCase();
  const [plural = "", ...group] = wanted.split(".");
  return resources.find(
    (each) =>
      (each.plural === plural || each.kind.toLowerCase() === plural || each.short === plural) &&
      (group.length === 0 || each.group === group.join(".")),
  );
}

export const resourceOf = (
  resources: readonly Resource[],
  object: { readonly apiVersion: string; readonly kind: string },
): Resource | undefined =>
  resources.find(
    (each) =>
      each.kind === object.kind &&
      (each.group === "" ? "" : each.group) === object.apiVersion.split("/").slice(0, -1).join("/"),
  );

export const fullName = (resource: Resource): string =>
  resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;

export const apiVersionOf = (resource: Resource): string =>
  resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;

export const pathOf = (resource: Resource, namespace: string | undefined, name?: string): string => {
  const base = resource.group === "" ? "/api/v1" : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.isNamespaced && namespace !== undefined ? `/namespaces/${namespace}` : "";
  return `${base}${scope}/${resource.plural}${name === undefined ? "" : `/${name}`}`;
};
