import { problem, quote, type Problem } from "./codes.ts";

/** What can be wrong with one value by itself. Those that may hold a secret never quote it. */
export const valueSays = {
  empty: (): Problem => problem("value", "it is empty", "give it a value, or take it out"),
  range: (min: number, max: number, got: number): Problem =>
    problem("value", `wanted ${min} to ${max}, got ${got}`, "a whole number between the two"),
  inexact: (): Problem =>
    problem("value", "a whole number beyond 2^53 would be changed on the way to its reader", "quote it"),
  notFinite: (): Problem =>
    problem(
      "value",
      "infinity and not-a-number reach no reader: they have no form in JSON",
      "write a number, or quote it",
    ),
  label: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)} is not a lower-case name`,
      "a-z, 0-9 and hyphens, starting and ending with a letter or digit, at most 63",
    ),
  releaseName: (text: string): Problem =>
    problem("value", `${quote(text)} is no Helm release name`, "a-z, 0-9, hyphens and dots, at most 53"),
  storageName: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)} is no usable name`,
      "letters, digits, _ and -, starting with a letter or digit, at most 32",
    ),
  datasetName: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)} is no dataset name`,
      "relative to the pool: parts of letters, digits, _ - . and :, with / between them, no @ and no #",
    ),
  repositoryName: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)} is no repository name`,
      "letters, digits, dots, _ and -, starting with a letter or digit",
    ),
  poolName: (text: string): Problem =>
    problem("value", `${quote(text)} is a word that zpool keeps for itself`, "put something of your own before it"),
  interfaceName: (text: string): Problem =>
    problem("value", `${quote(text)} is no interface name`, "a-z, 0-9 and hyphens, at most 15"),
  linkName: (text: string): Problem => problem("value", `${quote(text)} is no name of a network link`, "e.g. eno1"),
  host: (text: string): Problem => {
    if (/^[a-z]+:\/\//i.test(text))
      return problem("value", "wanted a host name or an IP address, got a URL", "no scheme, no port");
    if (/^(?:[^:]+|\[[^\]]*\]):\d+$/.test(text)) return problem("value", `${quote(text)} has a port`, "no port here");
    if (text.includes("*")) return problem("value", `${quote(text)} has a wildcard`, "name each host");
    return problem(
      "value",
      `${quote(text)} is neither a DNS name nor an IP address`,
      "no port, no prefix, no leading zeros",
    );
  },
  ip: (text: string): Problem =>
    problem("value", `${quote(text)} is no IP address`, "no prefix, no port, no leading zeros, e.g. 192.0.2.12"),
  noHostAddress: (text: string): Problem =>
    problem("value", `${quote(text)} is no address that a machine can have`, "e.g. 192.0.2.100 with its prefix"),
  fewServices: (text: string): Problem =>
    problem("value", `${quote(text)} is too small: a cluster needs 8 service addresses`, "a prefix of at most /29"),
  ipWithPrefix: (text: string): Problem =>
    problem("value", `${quote(text)} is no IP address with its prefix length`, "e.g. 192.0.2.10/24"),
  range4: (text: string): Problem => problem("value", `${quote(text)} is no range`, "e.g. 10.244.0.0/16"),
  hostBits: (text: string, masked: string): Problem =>
    problem("value", `${quote(text)} has host bits`, `did you mean ${masked}?`),
  ipv6Range: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)}: an IPv6-only cluster is not supported`,
      "dual stack goes through k0s.patch (spec.network.dualStack)",
    ),
  maskedRange: (text: string, masked: string): Problem =>
    problem("host-bits", `${quote(text)} has host bits and is taken as ${masked}`, `write ${masked}`),
  endpoint: (text: string): Problem => {
    const isUrl = /^[a-z]+:\/\//i.test(text);
    return problem(
      "value",
      isUrl ? "wanted host:port, got a URL" : `${quote(text)} is no host:port`,
      "e.g. hub.example.net:51820 or [2001:db8::2]:51820",
    );
  },
  key32: (what: string): Problem =>
    problem("value", `${what} is not base64 of 32 bytes`, "as `wg genkey` and `wg pubkey` print it, 44 characters"),
  calendar: (why: string): Problem =>
    problem(
      "value",
      `not an OnCalendar expression: ${why}`,
      "e.g. daily, Sun 04:00, Mon..Fri 22:30; see systemd.time(7)",
    ),
  cron: (calendar: string | undefined): Problem =>
    problem(
      "value",
      "this is cron syntax, wanted OnCalendar",
      calendar === undefined
        ? "e.g. daily, Sun 04:00, Mon..Fri 22:30; see systemd.time(7)"
        : `write ${quote(calendar)}`,
    ),
  duration: (): Problem => problem("value", "not a duration", "e.g. 90s, 15m, 1m30s"),
  waitRange: (): Problem =>
    problem("value", "wanted more than 0 and at most 1h", "e.g. 15m; the node asks again at its next boot"),
  httpsUrl: (): Problem =>
    problem(
      "value",
      "wanted an https:// URL without user and password",
      "e.g. https://seed.example.net/node-1; a password goes into authFile",
    ),
  webUrl: (): Problem =>
    problem(
      "value",
      "wanted an https:// or http:// URL without user and password",
      "e.g. https://charts.example.com/jetstack",
    ),
  absolutePath: (): Problem => problem("value", "wanted an absolute path", "no //, no .., no trailing slash"),
  mountPath: (text: string): Problem =>
    problem("value", `${quote(text)} is no normal absolute path`, "no //, no . or .., no trailing slash"),
  mountPlace: (text: string): Problem =>
    problem(
      "value",
      `nothing can be mounted at ${quote(text)}`,
      "below /srv, /mnt, /opt or /var; the rest is read-only or the system's own",
    ),
  mountKept: (text: string): Problem =>
    problem("value", `${quote(text)} is the system's own`, "choose another folder below /var, /srv, /mnt or /opt"),
  mountBlank: (text: string): Problem =>
    problem("value", `${quote(text)} ends in a blank`, "take it away: nothing can be mounted at such a point"),
  mountLength: (): Problem =>
    problem("value", "the mount point is too long", "255 bytes for each folder, and for its name as a systemd unit"),
  deviceNotDev: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)} is no path under /dev`,
      "e.g. /dev/disk/by-id/…, or a selector such as {serial: …}",
    ),
  deviceNotNormal: (text: string): Problem =>
    problem("value", `${quote(text)} is no normal path`, "no //, no .., no spaces"),
  devicePartition: (text: string): Problem =>
    problem("value", `${quote(text)} names a partition`, "name the whole disk"),
  deviceGlob: (text: string): Problem =>
    problem("value", `${quote(text)} is a pattern, not a path`, "a selector takes one: {model: …}"),
  deviceNoDisk: (text: string): Problem =>
    problem("value", `${quote(text)} is no whole disk`, "e.g. /dev/disk/by-id/…, or a selector such as {serial: …}"),
  deviceArray: (text: string): Problem =>
    problem("value", `${quote(text)} is no disk`, "only luks goes on an array, as /dev/md/NAME"),
  notOneLine: (): Problem =>
    problem("value", "no disk has a line break or control character in it", "one line, as lsblk shows it"),
  emptySelector: (): Problem =>
    problem(
      "value",
      "a selector needs at least one of serial, wwn, model, type, bus, minSize, maxSize",
      "the serial number names one disk: {serial: …}",
    ),
  size: (text: string): Problem =>
    problem("value", `${quote(text)} is no size`, "a number with its unit: 500GB, 1.8TiB"),
  chart: (text: string): Problem => {
    const isWeb = /^https?:/i.test(text);
    return problem(
      "value",
      isWeb ? "wanted a chart name, got a web address" : `${quote(text)} is no chart`,
      "repository/chart, or oci://registry/path",
    );
  },
  chartWithUser: (): Problem =>
    problem(
      "value",
      "wanted a chart without user and password",
      "k0s has no place for them: use a registry that asks for none",
    ),
  manifestFileName: (text: string): Problem => {
    const hint = "starts with a letter or digit, no slash, ends in .yaml (k0s reads nothing else)";
    return problem("value", `${quote(text)} is no manifest file name`, hint);
  },
  k0sStack: (text: string): Problem =>
    problem("value", `${quote(text)} is a stack of k0s itself`, "put a prefix of your own before it"),
  password8: (): Problem =>
    problem("value", "wanted 1 to 8 printable ASCII characters without spaces", "keepalived cuts the rest off"),
  kubernetesVersion: (text: string): Problem =>
    problem("value", `${quote(text)} is no k0s version`, "vX.Y.Z+k0s.N, as k0s's releases are named; or take it out"),
  labelKey: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)} is no label key`,
      "[prefix/]name: the name at most 63 of letters, digits, -, _ and .",
    ),
  labelValue: (text: string): Problem =>
    problem(
      "value",
      `${quote(text)} is no label value`,
      "at most 63 of letters, digits, -, _ and ., starting and ending with a letter or digit",
    ),
  kubeletLabel: (text: string): Problem =>
    problem(
      "value",
      `a kubelet may not give itself the label ${quote(text)}`,
      "use a domain of your own, or kubectl label",
    ),
  ambiguous: (text: string): Problem =>
    problem(
      "ambiguous-text",
      `${quote(text)} is text here, but something else to programs that read YAML 1.1`,
      "quote it",
    ),
  quotedBoolean: (text: string): Problem =>
    problem(
      "ambiguous-text",
      `${quote(text)} is text, which a chart takes for true`,
      "take the quotes off if a boolean is meant",
    ),
};
