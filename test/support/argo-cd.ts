/** What Argo CD brings into a cluster, as far as a hand-over looks at it, as JSON for kubectl: the kind, and an Application. */

export const APPLICATION_KIND = JSON.stringify({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "applications.argoproj.io" },
  spec: {
    group: "argoproj.io",
    scope: "Namespaced",
    names: { kind: "Application", plural: "applications", shortNames: ["app", "apps"] },
    versions: [{ name: "v1alpha1", served: true, storage: true }],
  },
});

export function applicationObject(
  name: string,
  {
    sync,
    health,
    isAutomated = true,
  }: { readonly sync: string; readonly health: string; readonly isAutomated?: boolean },
): string {
  return JSON.stringify({
    apiVersion: "argoproj.io/v1alpha1",
    kind: "Application",
    metadata: { name, namespace: "argocd" },
    spec: { project: "default", ...(isAutomated ? { syncPolicy: { automated: {} } } : {}) },
    status: { sync: { status: sync }, health: { status: health } },
  });
}
