import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../../iso/compile.ts";
import { type Bench, inTurns, median } from "./model.ts";

const ROUNDS = 41;
const LINES = 200;

/** As people write them: an overlay with many peers, disks, labels, an add-on with its values. */
export function longDocument(): string {
  const head = `role: controller+worker
cluster:
  name: harbour
  endpoint: 192.0.2.100
node:
  name: harbour-1
  labels:
    example.com/site: harbour
ha:
  enabled: true
  virtualIP: 192.0.2.100/24
  authPassFrom:
    file: /etc/corium/secrets/vrrp
raid:
  - name: k0s
    level: 1
    devices:
      - /dev/disk/by-id/ata-EXAMPLE_0001
      - { serial: EXAMPLE_0002, minSize: 500GB }
    mountPoint: /var/lib/k0s
upgrades:
  automatic: download
  schedule: "*-*-* 01:30:00"
addons:
  - name: metallb
    chart: oci://registry.example.net/charts/metallb
    namespace: metallb-system
    values:
      speaker:
        enabled: true
wireguard:
  - name: wg0
    address: 10.9.0.1/24
    listenPort: 51820
    generateKey: true
    peers:
`;
  const lines = head.split("\n").slice(0, -1);
  for (let peer = 2; lines.length + 5 <= LINES; peer++) {
    const key = Buffer.alloc(32, peer).toString("base64");
    lines.push(`      - publicKey: ${key}`, `        endpoint: node-${peer}.example.net:51820`);
    lines.push("        allowedIPs:", `          - 10.9.0.${peer}/32`, "        persistentKeepalive: 25");
  }
  while (lines.length < LINES) lines.push("# a comment");
  return `${lines.join("\n")}\n`;
}

function run(argv: readonly string[]): void {
  const { exitCode } = Bun.spawnSync([...argv], { stdout: "ignore", stderr: "ignore", env: {} });
  if (exitCode !== 0) throw new Error(`${argv.join(" ")}: exit status ${exitCode}`);
}

export const validate: Bench = {
  name: "validate",
  title: `corium validate of a valid document of ${LINES} lines against corium version, start-up included`,
  async run() {
    const folder = mkdtempSync(join(tmpdir(), "corium-bench-"));
    try {
      const corium = join(folder, "corium");
      compile(join(import.meta.dir, "../../main.ts"), corium, "0.0.0-bench");
      const document = join(folder, "node.yaml");
      writeFileSync(document, longDocument());
      const works = [[corium, "version"], [corium, "validate", document]].map((argv) => () => run(argv)); // prettier-ignore
      // The first start reads the program from disk.
      inTurns(3, works);
      const [started = 0, validated = 0] = inTurns(ROUNDS, works).map(median);
      return [
        `version:  ${started.toFixed(1)} ms (median of ${ROUNDS})`,
        `validate: ${validated.toFixed(1)} ms (median of ${ROUNDS}), goal under 150 ms`,
        `ratio:    ${(validated / started).toFixed(2)}`,
      ];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
