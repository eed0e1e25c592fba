/** `systemd-escape`: everything but ASCII letters, digits, `:`, `_` and `.` becomes `\xNN`; `/` becomes `-`. */
export function escapeUnit(text: string): string {
  let escaped = "";
  const bytes = new TextEncoder().encode(text);
  for (const [at, byte] of bytes.entries()) {
    const char = String.fromCharCode(byte);
    if (char === "/") escaped += "-";
    else if (/[A-Za-z0-9:_]/.test(char) || (char === "." && at > 0)) escaped += char;
    else escaped += `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return escaped;
}

/** `systemd-escape --path`: `/srv/my data/` → `srv-my\x20data`; the root is `-`. */
export function escapePath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return parts.length === 0 ? "-" : escapeUnit(parts.join("/"));
}
