/** Where k0s is and what it reads; promised by k0s (facts: section 3.3) and by the image. */
export const K0S_BINARY = "/usr/bin/k0s";
export const K0S_CONFIG = "/etc/k0s/k0s.yaml";
export const K0S_JOIN_TOKEN = "/etc/k0s/join-token";
export const K0S_DATA = "/var/lib/k0s";
export const K0S_MANIFESTS = `${K0S_DATA}/manifests`;
export const UNIT_FOLDER = "/etc/systemd/system";

export type K0sUnit = "k0scontroller" | "k0sworker";

export const unitFile = (unit: K0sUnit): string => `${UNIT_FOLDER}/${unit}.service`;

/** What `systemctl enable` makes of WantedBy=multi-user.target. */
export const unitWant = (unit: K0sUnit): string => `${UNIT_FOLDER}/multi-user.target.wants/${unit}.service`;
