/** The control plane's address: the real keepalived, on the configuration k0s would write. */
import { mkdirSync, writeFileSync } from "node:fs";
import { at, cardByMac, defaultRouteCard, listAt, numberAt, textAt, type ClusterConfig } from "./config.ts";
import { log, rooted } from "./stand-in.ts";

export function keepalivedConfig(config: ClusterConfig): string {
  const cplb = at(config, "spec", "network", "controlPlaneLoadBalancing", "keepalived");
  const blocks = listAt(cplb, "vrrpInstances").map((instance, index) => {
    const given = textAt(instance, "interface");
    const card = given === "" ? defaultRouteCard() : (cardByMac(given) ?? given);
    const peers = listAt(instance, "unicastPeers").map(String);
    const unicast =
      peers.length === 0
        ? ""
        : `  unicast_src_ip ${textAt(instance, "unicastSourceIP")}\n  unicast_peer {\n${peers.map((peer) => `    ${peer}\n`).join("")}  }\n`;
    return `vrrp_instance k0s-vip-${index} {
  state BACKUP
  interface ${card ?? ""}
  virtual_router_id ${numberAt(instance, 51 + index, "virtualRouterID")}
  priority 200
  advert_int ${numberAt(instance, 1, "advertIntervalSeconds")}
${unicast}  authentication {
    auth_type PASS
    auth_pass ${textAt(instance, "authPass")}
  }
  virtual_ipaddress {
${listAt(instance, "virtualIPs")
  .map((address) => `    ${String(address)}\n`)
  .join("")}  }
}
`;
  });
  // No keepalived user is made by k0s: it runs as root.
  return `global_defs {\n  script_user root\n}\n${blocks.join("")}`;
}

export function startKeepalived(config: ClusterConfig): { readonly stop: () => void } | undefined {
  const cplb = at(config, "spec", "network", "controlPlaneLoadBalancing");
  if (at(cplb, "enabled") !== true) return undefined;
  if (listAt(cplb, "keepalived", "vrrpInstances").length === 0) {
    log("warning", "no VRRP instances are configured", "CPLB");
    return undefined;
  }
  const path = rooted("/run/k0s/keepalived.conf");
  mkdirSync(rooted("/run/k0s"), { recursive: true });
  writeFileSync(path, keepalivedConfig(config), { mode: 0o600 });
  const program = Bun.which("keepalived", { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` });
  if (program === null) {
    log("error", "keepalived is not installed, the virtual address stays down", "CPLB");
    return undefined;
  }
  const argv = [program, "--dont-fork", "--use-file", path, "--no-syslog", "--log-console"];
  let isWanted = true;
  let child: Bun.Subprocess | undefined;
  const start = (): void => {
    child = Bun.spawn([...argv, "--pid", rooted("/run/k0s/keepalived.pid")], { stdout: "inherit", stderr: "inherit" });
    log("info", `started keepalived, pid ${child.pid}`, "CPLB");
    void child.exited.then(async (code) => {
      if (!isWanted) return;
      log("warning", `keepalived exited with ${code}, restarting`, "CPLB");
      await Bun.sleep(5000);
      if (isWanted) start();
    });
  };
  start();
  return {
    stop: () => {
      isWanted = false;
      child?.kill("SIGTERM");
    },
  };
}
