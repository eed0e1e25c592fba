import type { ArrayDetail, MdstatArray } from "./model.ts";

/** `mdadm --detail --export`. A removed member has no line: what is missing is `expected` minus the roles. */
export function parseDetailExport(stdout: string): ArrayDetail {
  const values = new Map<string, string>();
  for (const line of stdout.split("\n")) {
    const at = line.indexOf("=");
    if (at > 0) values.set(line.slice(0, at), line.slice(at + 1).trim());
  }
  const members: { path: string; role: number | "spare" }[] = [];
  for (const [key, role] of values) {
    const device = /^MD_DEVICE_(.+)_ROLE$/.exec(key)?.[1];
    const path = device === undefined ? undefined : values.get(`MD_DEVICE_${device}_DEV`);
    if (path !== undefined) members.push({ path, role: /^\d+$/.test(role) ? Number(role) : "spare" });
  }
  const rank = (role: number | "spare"): number => (role === "spare" ? Number.MAX_SAFE_INTEGER : role);
  const uuid = values.get("MD_UUID");
  const level = values.get("MD_LEVEL");
  const name = values.get("MD_NAME")?.replace(/^[^:]*:/, "");
  const expected = Number(values.get("MD_DEVICES"));
  return {
    members: members.toSorted((a, b) => rank(a.role) - rank(b.role) || (a.path < b.path ? -1 : 1)),
    ...(uuid === undefined ? {} : { uuid }),
    ...(level === undefined ? {} : { level }),
    ...(name === undefined ? {} : { name }),
    ...(Number.isInteger(expected) && expected > 0 ? { expected } : {}),
  };
}

/** `MD_UUID` of `mdadm --examine --export`: whose member a device is. */
export const parseExamineUuid = (stdout: string): string | undefined => /^MD_UUID=([0-9a-f:]{35})$/m.exec(stdout)?.[1];

/** `/proc/mdstat`: one line per array and indented ones about it. */
export function parseMdstat(text: string): readonly MdstatArray[] {
  const arrays: MdstatArray[] = [];
  let current: { head: string; body: string } | undefined;
  const flush = (): void => {
    const parsed = current === undefined ? undefined : parseArray(current.head, current.body);
    if (parsed !== undefined) arrays.push(parsed);
    current = undefined;
  };
  for (const line of text.split("\n")) {
    if (/^md\S* : /.test(line)) {
      flush();
      current = { head: line, body: "" };
    } else if (/^\s+\S/.test(line) && current !== undefined) current.body += `${line}\n`;
    else flush();
  }
  flush();
  return arrays;
}

function parseArray(head: string, body: string): MdstatArray | undefined {
  const match =
    /^(md\S*) : (active|inactive)((?: \([a-z-]+\))*)(?: (linear|raid\d+|multipath))?((?: \S+\[\d+\]\S*)*)/.exec(head);
  if (match === null) return undefined;
  const [, device = "", state = "", flags = "", level, list = ""] = match;
  const counts = /\[(\d+)\/(\d+)\]/.exec(body);
  const action = /\b(recovery|resync|reshape|check)\s*=\s*([\d.]+)%/.exec(body);
  const pending = /\b(recovery|resync)\s*=\s*(?:PENDING|DELAYED)/.exec(body);
  const doing = (action ?? pending)?.[1] as MdstatArray["action"];
  return {
    device,
    isActive: state === "active",
    isReadOnly: flags.includes("read-only"),
    isAutoReadOnly: flags.includes("auto-read-only"),
    members: list
      .trim()
      .split(" ")
      .filter((each) => each !== "")
      .map((each) => ({
        device: each.replace(/\[\d+\].*$/, ""),
        isFailed: each.includes("(F)"),
        isSpare: each.includes("(S)"),
      })),
    ...(level === undefined ? {} : { level }),
    ...(counts === null ? {} : { expected: Number(counts[1]), active: Number(counts[2]) }),
    ...(doing === undefined ? {} : { action: doing }),
    ...(action === null ? {} : { progressPercent: Number(action[2]) }),
  };
}
