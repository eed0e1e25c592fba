/** iso/packages.lock: the packages of the image, `name version sha256` a line, as Debian's signed index lists them. */

/** What the packages of this build have that the lock does not: a new, another or an unknown package. */
export function lockDrift(lock: readonly string[], built: readonly string[]): string[] {
  const locked = new Map(lock.map((line) => [line.split(" ")[0] ?? "", line]));
  return built.flatMap((line) => {
    const [name = "", version = ""] = line.split(" ");
    const wanted = locked.get(name);
    if (wanted === line) return [];
    if (wanted === undefined) return [`${name} ${version} is not in the lock`];
    const [, lockedVersion = ""] = wanted.split(" ");
    return [
      lockedVersion === version
        ? `${name} ${version} has another hash than the lock says`
        : `${name} is ${version}, the lock says ${lockedVersion}`,
    ];
  });
}

export const lockLines = (text: string): string[] =>
  text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
