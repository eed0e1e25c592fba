/** The node that tests of a whole life have in common: one machine, its data on a mirror of two disks. */
export const K0S_UNIT = "k0scontroller.service";

export const MIRRORED_NODE = `role: single
cluster: { name: demo }
node: { name: node1 }
api: { enabled: true }
raid:
  - name: data
    level: 1
    devices: [{ serial: data-a }, { serial: data-b }]
    mountPoint: /var/lib/k0s
`;

/** To be put behind a document; further keys of the add-on may follow it, indented by four. */
export const HELLO_ADDON = `addons:
  - name: hello
    chart: site/hello
    version: 1.2.3
    namespace: hello
    repository: { name: site, url: https://charts.example.com }
`;

/** A CNI of its own, which GitOps takes over. */
export const HANDOVER_BLOCKS = `network:
  cni: custom
  handover: { mode: automatic, stack: site-cni, application: { name: site-cni, namespace: argocd } }
manifests:
  - name: site-cni
    files:
      - name: cni.yaml
        content: "{apiVersion: v1, kind: ConfigMap, metadata: {name: site-cni, namespace: default}, data: {owner: bootstrap}}"
`;
/** Of its stack: as bootstrap writes it, and where a hand-over keeps it. */
export const STACK_FOLDER = "/var/lib/k0s/manifests/site-cni";
export const HANDED_OVER_FOLDER = "/var/lib/k0s/handed-over/site-cni";
